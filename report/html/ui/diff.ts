// Makes the page of a diff interactive. Without it, or where something fails, the page has its tables.

import { Axis, Changes, fields, Header, View } from "./changes";
import { searchInput } from "./controls";
import { load, Packed } from "./data";
import { choice, copier, el, fill, redrawn } from "./dom";
import * as format from "./format";
import { linked } from "./link";
import { Overlay, overlayHelp } from "./overlay";
import { Rows } from "./rows";
import { saver, Source } from "./save";
import { SignedFlame } from "./signed";
import { Trail } from "./trail";

/** What the axes are called where one chooses. */
const ways: Record<Axis, string> = {
	step: "aligned, step on step",
	share: "each from beginning to end",
	event: "not aligned, event on event",
};

/** The picture of both traces, and that of what is looked at below it. */
function timelines(view: View, link: () => string): { element: HTMLElement; overlay: Overlay } {
	const { d } = view,
		overlay = new Overlay(view, "Active memory", 300, () => view.active(), true);
	let curves = view.curves();
	const part = new Overlay(view, "Memory of the choice", 130, () => curves.lines, false),
		name = el("b", { class: "path" }),
		note = el("span", { class: "when" }),
		stack = el("ol", { class: "stack" }),
		chosen = el(
			"div",
			{ class: "chosen", hidden: true },
			el(
				"p",
				{},
				name,
				" ",
				note,
				" ",
				el(
					"button",
					{ type: "button", click: () => view.set({ row: -1, focus: "", around: "" }) },
					"Show all again",
				),
			),
			part.element,
			stack,
		),
		none = el(
			"p",
			{ class: "hint" },
			"Choose a row of the table or a call of the flame graph to see its memory here.",
		);
	const update = () => {
		curves = view.curves();
		chosen.hidden = none.hidden = !d.sides.some(s => s.n && !s.coarse);
		if (view.chosen) none.hidden = true;
		else chosen.hidden = true;
		name.textContent = view.chosen?.name ?? "";
		const { row } = view.state,
			{ missing, lines } = curves,
			unknown = d.sides
				.filter((s, k) => s.n && !d.same && lines[k].every(v => Number.isNaN(v)))
				.map(s => s.letter);
		note.textContent = [
			missing && `Of ${format.plural(missing, "small stack")} there is no curve in this page.`,
			row < 0 && "Stacks of the same calls that hold nothing at the moments that are compared are not in it.",
			...unknown.map(l => `Side ${l} has none of it at the moment that is compared; at others it is not known.`),
		]
			.filter(t => t)
			.join(" ");
		const calls = row >= 0 && view.state.by === "stack" ? view.calls() : [];
		fill(stack, ...calls.map(c => el("li", {}, c)));
		stack.hidden = !calls.length;
		part.render();
	};
	view.listen(c => (["by", "row", "focus", "around", "inverted"] as const).some(k => c.has(k)) && update());
	update();
	const axis =
		d.axes.length > 1 &&
		choice(
			"Traces",
			d.axes.map(a => [a, ways[a]]),
			view.state.axis,
			v => view.setAxis(v as Axis),
		);
	const units = [...new Set(d.sides.map(s => s.head.unit).filter(u => u))].join("; on side B ");
	const say = el("p", { class: "hint" });
	const explain = () => {
		if (axis) axis.querySelector("select")!.value = view.state.axis;
		const a = view.state.axis;
		say.textContent =
			(a === "step"
				? `One step of A lies on the same step of B; a step is ${units || "what the program repeats"}. `
				: a === "share"
					? d.axes.includes("step")
						? "Each trace goes from its beginning to its end. "
						: (d.steps
								? "There are too many steps to lay them on each other"
								: "Steps cannot be compared by their numbers") +
							", so each trace goes from its beginning to its end. "
					: "Events are counted from the beginning of each trace. ") +
			(d.sides.some(s => s.head.ooms.length) ? "✕ marks requests that failed. " : "") +
			(d.sides[0].coarse ? "The lines are the highest active memory of each step. " : "") +
			(d.same ? "Both sides are moments of one trace, which is drawn once. " : "") +
			overlayHelp;
	};
	view.listen(c => c.has("axis") && explain());
	explain();
	const zoom = (f: number) => {
		const { x0, x1, cursor } = view.state,
			mid = Math.min(Math.max(cursor, x0), x1);
		view.zoom(mid - (mid - x0) * f, mid + (x1 - mid) * f);
	};
	const button = (text: string, label: string, click: () => void) =>
		el("button", { type: "button", "aria-label": label, title: label, click }, text);
	return {
		overlay,
		element: el(
			"div",
			{},
			el(
				"div",
				{ class: "toolbar", role: "group", "aria-label": "Timelines" },
				axis,
				el(
					"span",
					{ class: "buttons" },
					button("−", "Zoom out", () => zoom(2)),
					button("+", "Zoom in", () => zoom(0.5)),
					button("All", "Show the whole traces", () => view.set({ x0: 0, x1: view.full() })),
				),
				el("span", { class: "buttons" }, copier("Copy link", link), saver("diff", () => overlay).element),
			),
			overlay.element,
			say,
			none,
			chosen,
		),
	};
}

function mount(packed: Packed<Header>): void {
	const d = new Changes(packed),
		view = new View(d),
		flame = new SignedFlame(view),
		rows = new Rows(view),
		trail = new Trail({ shown: 0, open: () => {}, listen: () => {} }, [0], () => "diff");
	const place = (id: string, ...children: Node[]) => {
		const at = document.getElementById(id)!;
		at.append(...children);
		at.classList.add("on");
		at.closest("section")!.classList.add("is-live");
	};
	const traced = d.sides.some(s => s.n),
		times = traced ? timelines(view, () => trail.link()) : null;
	if (times) place("timelines-live", times.element);
	const save = (source: Source) => {
		const s = saver("diff", () => source);
		s.update();
		return s.element;
	};
	place(
		"changes-live",
		el(
			"div",
			{ class: "searchbar", role: "search" },
			rows.by,
			searchInput(view, "Search rows and calls", "Search rows and calls: model.py, forward…"),
			save(rows),
			!traced && copier("Copy link", () => trail.link()),
		),
		rows.element,
		el("h3", {}, "Flame graph ", save(flame)),
		flame.element,
	);
	for (const panel of [flame, rows]) {
		view.listen(c => panel.needs.some(k => c.has(k)) && panel.render());
		redrawn(panel.element, () => panel.render());
	}
	trail.add(0, linked(view, fields));
	view.flush();
	rows.render();
	flame.render();
	times?.overlay.render();
	trail.start();
	(globalThis as unknown as { snapana: unknown }).snapana = { d, view, flame, rows, trail, overlay: times?.overlay };
}

async function start(): Promise<void> {
	const text = document.getElementById("snapana-data")?.textContent;
	if (text) mount(await load<Header>(text));
	document.documentElement.classList.add("ready");
}

start().catch(e => {
	console.error("snapana:", e);
	for (const section of document.querySelectorAll("section.is-live")) section.classList.remove("is-live");
	fill(document.getElementById("changes-live")!);
});
