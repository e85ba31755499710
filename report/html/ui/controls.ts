// The buttons above the timeline, and the line below it that says where the cursor is.

import { choice, el, fill, unique } from "./dom";
import { never } from "./bands";
import * as format from "./format";
import { jump, largest, step, stepTo } from "./keys";
import { Store } from "./store";
import { Axis, ColorBy, Mode, State, View } from "./view";

/** Where one types what to search for; the key "/" goes there. */
export function searchInput<S extends { search: string }>(
	view: Store<S>,
	label: string,
	placeholder: string,
): HTMLInputElement {
	let waiting = 0;
	const input = el("input", {
		type: "search",
		placeholder,
		"aria-label": label,
		spellcheck: "false",
		input: () => {
			clearTimeout(waiting);
			waiting = window.setTimeout(() => {
				waiting = 0;
				view.set({ search: input.value } as Partial<S>);
			}, 120);
		},
	});
	view.listen(c => {
		if (c.has("search") && !waiting) input.value = view.state.search;
	});
	document.addEventListener("keydown", e => {
		if (e.key !== "/" || e.target instanceof HTMLInputElement || !input.offsetParent) return;
		e.preventDefault();
		input.focus();
	});
	return input;
}

/** The buttons above the timeline, the last of which are about all of it. */
export function toolbar(view: View, ...last: HTMLElement[]): HTMLElement {
	const { dev, state } = view;
	const button = (text: string, label: string, click: () => void) =>
		el("button", { type: "button", "aria-label": label, title: label, click }, text);
	const color = choice(
		"Color",
		[
			["category", "purpose"],
			["site", "site"],
			["stream", "stream"],
			["pool", "pool"],
			["age", "lifetime"],
			...(dev.held.bytes.length ? [["holder", "holder"] as [string, string]] : []),
		],
		state.color,
		v => view.set({ color: v as ColorBy }),
	);
	const mode = choice(
		"Show",
		[
			["bands", "allocations"],
			["stacked", "sums"],
			["reserved", "reserved memory"],
			["free", "free memory"],
		],
		state.mode,
		v => view.show(v as Mode),
	);
	view.listen(() => {
		mode.querySelector("select")!.value = state.mode;
		color.querySelector("select")!.value = state.color;
		color.hidden = state.mode === "reserved" || state.mode === "free";
		if (axis) axis.querySelector("select")!.value = state.axis;
	});
	const axis =
		dev.hasTimes &&
		choice(
			"By",
			[
				["event", "event"],
				["time", "time"],
			],
			state.axis,
			v => view.setAxis(v as Axis),
		);
	const number = el("input", {
		type: "number",
		min: 0,
		max: dev.steps.last.length - 1,
		"aria-label": "Step number",
		value: 0,
		change: () => stepTo(view, Number(number.value)),
	});
	const zoom = (factor: number) => {
		const { x0, x1 } = view.state,
			mid = Math.min(Math.max(view.at(view.state.cursor), x0), x1);
		view.zoom(mid - (mid - x0) * factor, mid + (x1 - mid) * factor);
	};
	const select = el(
		"button",
		{
			type: "button",
			"aria-pressed": "false",
			title: "Select a range by dragging, as Shift does",
			click: () => view.set({ select: !view.state.select }),
		},
		"Select",
	);
	view.listen(c => c.has("select") && select.setAttribute("aria-pressed", String(state.select)));
	const has = (kind: string) => dev.marks.some(m => m.kind === kind);
	return el(
		"div",
		{ class: "toolbar", role: "group", "aria-label": "Timeline" },
		mode,
		color,
		axis,
		el(
			"span",
			{ class: "buttons" },
			button("−", "Zoom out", () => zoom(2)),
			button("+", "Zoom in", () => zoom(0.5)),
			button("All", "Show the whole trace", () => view.set({ x0: 0, x1: view.full(), lo: 0, hi: 0 })),
		),
		el(
			"span",
			{ class: "buttons" },
			has("peak") && button("Peak", "Go to the peak", () => jump(view, "peak")),
			has("oom") && button("OOM", "Go to the next out-of-memory event", () => jump(view, "oom")),
			has("annotation") &&
				button("Note", "Go to the next annotation of a tensor", () => jump(view, "annotation")),
			button("Largest", "Pin the largest allocation that is live at the cursor", () => largest(view)),
		),
		dev.steps.last.length > 0 &&
			el(
				"span",
				{ class: "buttons" },
				button("‹", "Previous step", () => step(view, -1)),
				el("span", { class: "lead" }, "Step"),
				number,
				button("›", "Next step", () => step(view, 1)),
			),
		el("span", { class: "buttons" }, select, ...last),
	);
}

export function search(view: View): HTMLElement {
	const result = el("output", { class: "found" });
	const input = searchInput(
		view,
		"Search stacks, labels and addresses",
		"Search stacks, labels, addresses: model.py, 0x7f…",
	);
	const box = (text: string, key: "regex" | "internals") => {
		const id = unique("box"),
			check = el("input", { type: "checkbox", id, change: () => view.set({ [key]: check.checked }) });
		view.listen(changed => changed.has(key) && (check.checked = view.state[key]));
		return el("label", { for: id, class: "check" }, check, text);
	};
	const say = () => {
		const m = view.match;
		fill(lived, ...(view.address ? tenants(view) : []));
		lived.hidden = !view.address;
		input.classList.toggle("wrong", view.searchError !== "");
		if (view.searchError) result.textContent = "Invalid regular expression: " + view.searchError;
		else if (!view.choosy) result.textContent = "";
		else {
			const g = view.matched(),
				all = view.dev.lives.totalAt(view.state.cursor),
				{ pick, only } = view.state;
			const of = [
				pick?.name,
				only.replaceAll("\n", " and "),
				view.address && format.plural(view.address.rows.length, "allocation"),
				m &&
					format.plural(
						m.reduce((a, b) => a + b, 0),
						"stack",
					),
			]
				.filter(s => s)
				.join(", ");
			result.textContent =
				`${of}; at the cursor ${format.bytes(g.bytes)} in ` +
				`${format.plural(g.count, "block")}, ${format.percent(g.bytes, all)} of active`;
		}
		none.hidden = !view.state.pick && !view.state.only;
	};
	const lived = el("div", { class: "lived", hidden: true });
	const none = el(
		"button",
		{ type: "button", hidden: true, click: () => view.set({ pick: null, only: "" }) },
		"Clear highlight",
	);
	view.listen(c => {
		if ((["search", "regex", "internals", "pick", "only", "cursor", "detail"] as const).some(k => c.has(k))) say();
	});
	return el(
		"div",
		{ class: "searchbar", role: "search" },
		input,
		box("regular expression", "regex"),
		box("interpreter frames", "internals"),
		none,
		result,
		lived,
	);
}

const mostTenants = 12;

/** Who lived at the address that is searched for: those around the cursor, each a button that pins it. */
function tenants(view: View): (HTMLElement | false)[] {
	const d = view.dev,
		{ addr, hex, rows } = view.address!,
		now = view.state.cursor;
	const segment = d.segments(now).find(s => addr >= s.addr && addr < s.addr + s.size);
	const where = segment
		? `in a segment of ${format.bytes(segment.size)} at ${d.hex(segment.addr)}, ` + d.whereName(segment.place)
		: "in no segment";
	const live = rows.find(r => d.lives.born[r] <= now && d.lives.freed[r] > now);
	const state =
		live === undefined
			? "free"
			: addr - d.addr[live] >= d.kinds.requested[d.kind[live]]
				? "behind the requested bytes of its block"
				: "in use";
	const near = rows.findLastIndex(r => d.lives.born[r] <= now),
		from = Math.max(Math.min(near - mostTenants / 2, rows.length - mostTenants), 0),
		shown = rows.slice(from, from + mostTenants);
	const missing = d.leftOut.lives > 0 && " Not all allocations are in this page.";
	return [
		el(
			"p",
			{ class: "hint" },
			`At the cursor, ${hex} is ${where}${segment ? ", " + state : ""}. ` +
				(rows.length ? "Allocations that lived there:" : "No allocation in this page lived there."),
			missing || "",
		),
		...shown.map(r => {
			const born = d.lives.born[r],
				freed = d.lives.freed[r];
			return el(
				"button",
				{
					type: "button",
					class: r === live ? "tenant now" : "tenant",
					click: () => {
						view.go(Math.max(born, 0));
						view.set({ pinned: r });
					},
				},
				el("b", {}, d.blockName(r)),
				` ${format.bytes(d.lives.size[r])}, ${born < 0 ? "from before the trace" : "from event " + format.count(born)}` +
					`${freed === never ? "" : " to " + format.count(freed)}, ${d.tables.site(d.stackOf(r))}`,
			);
		}),
		rows.length > shown.length &&
			el("p", { class: "more" }, `… ${format.plural(rows.length - shown.length, "more allocation")}`),
	];
}

/** Where the cursor is. */
export function status(view: View): HTMLElement {
	const line = el("p", { class: "sum cursor", "aria-live": "off" });
	const update = (c: Set<keyof State> | null) => {
		const { dev, state } = view;
		if (!c || c.has("cursor") || c.has("detail")) {
			const t = dev.totals(state.cursor),
				rest = dev.restAt(state.cursor)?.reduce((a, b) => a + b, 0) ?? 0;
			const step = dev.steps.first.findLastIndex(f => f <= state.cursor);
			const parts: [string, number][] = [
				["reserved", t.reserved],
				["active", t.active + rest],
				["allocated", t.allocated + rest],
			];
			fill(
				line,
				el(
					"span",
					{},
					el(
						"b",
						{},
						dev.events === 0
							? "the dump"
							: state.cursor < 0
								? "before the trace"
								: `event ${format.count(state.cursor)}`,
					),
					" ",
					dev.when(state.cursor),
				),
				...parts.map(([name, v]) => el("span", {}, name + " ", el("b", {}, format.bytes(v)))),
				step >= 0 &&
					state.cursor <= dev.steps.last[step] &&
					el("span", {}, `step ${step} ${dev.steps.names[step]}`),
				rest > 0 && el("span", { class: "hint" }, `${format.bytes(rest)} of it not in this page`),
			);
		}
	};
	view.listen(update);
	update(null);
	return el("div", { class: "status" }, line);
}
