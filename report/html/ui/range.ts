// What happened in a part of the trace: after event a, up to event b.

import { never } from "./bands";
import { el, fill } from "./dom";
import * as format from "./format";
import { Device } from "./model";
import { View } from "./view";

/** What came and went at a site. */
export interface Change {
	site: string;
	allocated: number;
	freed: number;
}

export interface Range {
	a: number;
	b: number;
	allocated: number[]; // rows
	freed: number[];
	within: number[]; // allocated and freed in it
	steps: [number, number] | null; // the first and the last that it has a part of
}

/** The range between the two points, the second of which is the cursor where it is not set; null without a first. */
export function marked(view: View): { a: number; b: number } | null {
	const { markA, markB, cursor } = view.state,
		other = markB > -2 ? markB : cursor;
	return markA > -2 ? { a: Math.min(markA, other), b: Math.max(markA, other) } : null;
}

export function measure(d: Device, a: number, b: number): Range {
	const l = d.lives,
		out: Range = { a, b, allocated: [], freed: [], within: [], steps: null };
	l.overlapping(a, b, row => {
		const came = l.born[row] > a && l.born[row] <= b,
			went = l.freed[row] !== never && l.freed[row] > a && l.freed[row] <= b;
		if (came) out.allocated.push(row);
		if (went) out.freed.push(row);
		if (came && went) out.within.push(row);
	});
	const first = d.steps.last.findIndex(e => e > a),
		last = d.steps.first.findLastIndex(e => e <= b);
	if (first >= 0 && last >= first) out.steps = [first, last];
	return out;
}

/** What came and went in a range by site, the largest net change first. */
export function bySite(d: Device, r: Range): Change[] {
	const sites = new Map<number, Change>();
	const add = (rows: number[], key: "allocated" | "freed") => {
		for (const row of rows) {
			const s = d.tables.stackSite[d.stackOf(row)];
			let c = sites.get(s);
			if (!c) sites.set(s, (c = { site: d.tables.strings[s], allocated: 0, freed: 0 }));
			c[key] += d.lives.size[row];
		}
	};
	add(r.allocated, "allocated");
	add(r.freed, "freed");
	const net = (c: Change) => Math.abs(c.allocated - c.freed);
	return [...sites.values()].sort(
		(x, y) => net(y) - net(x) || y.allocated - x.allocated || (x.site < y.site ? -1 : 1),
	);
}

export function bytesOf(d: Device, rows: number[]): number {
	return rows.reduce((sum, row) => sum + d.lives.size[row], 0);
}

/** How long a range is, in events, time and steps. */
export function extent(d: Device, r: Range): string {
	const words = [format.plural(r.b - r.a, "event")];
	if (d.hasTimes && r.a >= 0) words.push(format.micros(d.timeOf(r.b) - d.timeOf(r.a)));
	if (r.steps) words.push(r.steps[0] === r.steps[1] ? `step ${r.steps[0]}` : `steps ${r.steps[0]} to ${r.steps[1]}`);
	return words.join(", ");
}

/** The line that sums up the selected range, below the timeline. */
export function rangeLine(view: View, details: () => void): HTMLElement {
	const line = el("p", { class: "sum range", hidden: true, role: "status" }),
		button = (text: string, click: () => void) => el("button", { type: "button", click }, text);
	view.listen(changed => {
		if (!(["markA", "markB", "detail"] as const).some(k => changed.has(k))) return;
		const at = view.state.markB > -2 ? marked(view) : null;
		line.hidden = !at;
		if (!at) return;
		const { dev } = view,
			r = measure(dev, at.a, at.b),
			came = bytesOf(dev, r.allocated),
			went = bytesOf(dev, r.freed);
		const part = (name: string, bytes: string, rows: number[]) =>
			el("span", {}, name + " ", el("b", {}, bytes), ` in ${format.plural(rows.length, "block")}`);
		fill(
			line,
			el("span", {}, el("b", {}, "Selected"), " " + extent(dev, r)),
			part("allocated", format.bytes(came), r.allocated),
			part("freed", format.bytes(went), r.freed),
			part("allocated and freed in it", format.bytes(bytesOf(dev, r.within)), r.within),
			el("span", {}, "net ", el("b", {}, format.change(came - went))),
			el(
				"span",
				{ class: "buttons" },
				button("By site", details),
				button("Zoom to it", () => view.zoom(view.at(at.a), view.at(at.b))),
				button("Clear", () => view.set({ markA: -2, markB: -2 })),
			),
		);
	});
	return line;
}
