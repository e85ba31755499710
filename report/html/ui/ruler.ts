// What happened between two points.

import { never } from "./bands";
import { change, count, bytes, micros, plural } from "./format";
import { el, fill } from "./dom";
import { Panel } from "./panel";
import { State, View } from "./view";

export class Ruler implements Panel {
	readonly name = "Compare";
	readonly needs: (keyof State)[] = ["markA", "markB", "cursor"];
	readonly element = el("div", { class: "panel ruler" });
	private lines: string[] = [];

	constructor(readonly view: View) {}

	/** What was allocated and freed after event a, up to event b. */
	between(a: number, b: number): { allocated: number[]; freed: number[] } {
		const l = this.view.dev.lives,
			allocated: number[] = [],
			freed: number[] = [];
		l.overlapping(a, b, row => {
			if (l.born[row] > a && l.born[row] <= b) allocated.push(row);
			if (l.freed[row] !== never && l.freed[row] > a && l.freed[row] <= b) freed.push(row);
		});
		return { allocated, freed };
	}

	render(): void {
		const { dev, state } = this.view;
		if (state.markA === -2) {
			this.lines = [];
			fill(
				this.element,
				el(
					"p",
					{ class: "empty" },
					"Shift-click two points in the timeline to compare (or press M at the cursor).",
				),
			);
			return;
		}
		const other = state.markB > -2 ? state.markB : state.cursor;
		const a = Math.min(state.markA, other),
			b = Math.max(state.markA, other);
		const before = dev.totals(a),
			after = dev.totals(b),
			{ allocated, freed } = this.between(a, b);
		const sum = (rows: number[]) => rows.reduce((s, r) => s + dev.lives.size[r], 0);
		const kept = allocated.filter(r => dev.lives.freed[r] > b),
			gone = freed.filter(r => dev.lives.born[r] <= a);
		const rows: [string, string][] = [
			["From", `event ${count(a)} ${dev.when(a)}`],
			["To", `event ${count(b)} ${dev.when(b)}${state.markB > -2 ? "" : " (the cursor)"}`],
			[
				"Between",
				plural(b - a, "event") + (dev.hasTimes && a >= 0 ? ", " + micros(dev.timeOf(b) - dev.timeOf(a)) : ""),
			],
			["Active", `${bytes(before.active)} → ${bytes(after.active)}: ${change(after.active - before.active)}`],
			[
				"Reserved",
				`${bytes(before.reserved)} → ${bytes(after.reserved)}: ${change(after.reserved - before.reserved)}`,
			],
			[
				"Allocated",
				`${bytes(sum(allocated))} in ${plural(allocated.length, "block")}, ${bytes(sum(kept))} still live`,
			],
			["Freed", `${bytes(sum(freed))} in ${plural(freed.length, "block")}, ${bytes(sum(gone))} from before`],
		];
		const list = (title: string, of: number[]) =>
			of.length > 0 &&
			el(
				"div",
				{},
				el("h4", {}, title),
				el(
					"table",
					{ class: "groups" },
					el(
						"tbody",
						{},
						...dev
							.group(of, r => dev.tables.site(dev.stackOf(r)))
							.slice(0, 8)
							.map(g =>
								el(
									"tr",
									{},
									el("td", { class: "n b" }, bytes(g.bytes)),
									el("td", { class: "n" }, count(g.count)),
									el("td", { class: "path" }, g.name),
								),
							),
					),
				),
			);
		this.lines = rows.map(([k, v]) => `${k}\t${v}`);
		fill(
			this.element,
			el("dl", { class: "pairs" }, ...rows.map(([k, v]) => el("div", {}, el("dt", {}, k), el("dd", {}, v)))),
			dev.leftOut.lives > 0 &&
				el("p", { class: "hint" }, "Allocations that are not in this page are not counted."),
			el(
				"div",
				{ class: "pair" },
				list("Allocated in between, still live", kept),
				list("Live before, freed in between", gone),
			),
		);
	}

	text(): string {
		return this.lines.join("\n") + "\n";
	}
}
