// What happened between two points: the ends of the range that is selected.

import { change, count, bytes, plural } from "./format";
import { el, fill } from "./dom";
import { Panel } from "./panel";
import { Cell } from "./save";
import { bySite, bytesOf, Change, extent, marked, measure, Range } from "./range";
import { State, View } from "./view";

const mostSites = 20;

export class Ruler implements Panel {
	readonly name = "Compare";
	readonly needs: (keyof State)[] = ["markA", "markB", "cursor"];
	readonly element = el("div", { class: "panel ruler" });
	range: Range | null = null;
	changes: Change[] = [];
	private lines: string[] = [];

	constructor(readonly view: View) {}

	render(): void {
		const { dev, state } = this.view,
			at = marked(this.view);
		this.lines = [];
		this.range = at && measure(dev, at.a, at.b);
		this.changes = this.range ? bySite(dev, this.range) : [];
		if (!this.range) {
			fill(
				this.element,
				el(
					"p",
					{ class: "empty" },
					"Select a range in the timeline: drag with Shift, or Shift-click two points (or press M at the cursor).",
				),
			);
			return;
		}
		const r = this.range,
			{ a, b } = r,
			before = dev.totals(a),
			after = dev.totals(b);
		const kept = r.allocated.filter(row => dev.lives.freed[row] > b),
			old = r.freed.filter(row => dev.lives.born[row] <= a),
			sum = (rows: number[]) => `${bytes(bytesOf(dev, rows))} in ${plural(rows.length, "block")}`;
		const rows: [string, string][] = [
			["From", `event ${count(a)} ${dev.when(a)}`],
			["To", `event ${count(b)} ${dev.when(b)}${state.markB > -2 ? "" : " (the cursor)"}`],
			["Between", extent(dev, r)],
			["Active", `${bytes(before.active)} → ${bytes(after.active)}: ${change(after.active - before.active)}`],
			[
				"Reserved",
				`${bytes(before.reserved)} → ${bytes(after.reserved)}: ${change(after.reserved - before.reserved)}`,
			],
			["Allocated", `${sum(r.allocated)}, ${bytes(bytesOf(dev, kept))} still live`],
			["Freed", `${sum(r.freed)}, ${bytes(bytesOf(dev, old))} from before`],
			["Both", `${sum(r.within)} allocated and freed in between`],
		];
		this.lines = [
			...rows.map(([k, v]) => `${k}\t${v}`),
			...this.changes.map(c => `${change(c.allocated - c.freed)}\t${c.site}`),
		];
		fill(
			this.element,
			el("dl", { class: "pairs" }, ...rows.map(([k, v]) => el("div", {}, el("dt", {}, k), el("dd", {}, v)))),
			dev.leftOut.lives > 0 &&
				el("p", { class: "hint" }, "Allocations that are not in this page are not counted."),
			this.changes.length > 0 && sites(this.changes),
		);
	}

	csv(): Cell[][] {
		return [
			["net (bytes)", "allocated (bytes)", "freed (bytes)", "site"],
			...this.changes.map(c => [c.allocated - c.freed, c.allocated, c.freed, c.site]),
		];
	}

	text(): string {
		return this.lines.join("\n") + "\n";
	}
}

/** The change by site. */
function sites(all: Change[]): HTMLElement {
	const head = (text: string, number = true) => el("th", { scope: "col", class: number ? "n" : "" }, text),
		rest = all.length - mostSites;
	return el(
		"div",
		{ class: "scroll", tabindex: 0, role: "region", "aria-label": "change by site" },
		el(
			"table",
			{ class: "groups" },
			el("thead", {}, el("tr", {}, head("Net"), head("Allocated"), head("Freed"), head("Site", false))),
			el(
				"tbody",
				{},
				...all
					.slice(0, mostSites)
					.map(c =>
						el(
							"tr",
							{},
							el("td", { class: "n b" }, change(c.allocated - c.freed)),
							el("td", { class: "n" }, c.allocated ? bytes(c.allocated) : ""),
							el("td", { class: "n" }, c.freed ? bytes(c.freed) : ""),
							el("td", { class: "path" }, c.site),
						),
					),
			),
		),
		rest > 0 && el("p", { class: "more" }, `… ${plural(rest, "more site")}`),
	);
}
