// What two sides differ in, and what a user looks at of it. The contract is snapana/report/internal/page, diff.go.

import { firstAt } from "./bands";
import { Leaf } from "./calls";
import { Column, Packed } from "./data";
import { Field, span, spanText } from "./link";
import { Store, within } from "./store";

type Became = "grown" | "shrunk" | "new" | "gone" | "same";

interface SideHeader {
	events: number;
	at: number;
	peak: number;
	ooms: number[];
	unit: string;
	first: Column;
	event: Column;
	active: Column;
	step_first: Column;
	step_last: Column;
	step_peak: Column;
	courses: Column;
	pairs: number;
	left: number;
}

interface TableHeader {
	kind: string;
	name: Column;
	a: Column;
	b: Column;
	state: Became[];
	noise: Column;
	of_a: Column;
	of_b: Column;
	others_a: Column;
	others_b: Column;
	sure: boolean;
}

export interface Header {
	version: number;
	strings: string[];
	frames: { text: Column; origin: Column };
	nodes: { parent: Column; frame: Column };
	pairs: Record<"a" | "b" | "node" | "course_a" | "course_b", Column>;
	tables: TableHeader[];
	sides: [SideHeader, SideHeader];
	steps: number;
	same: boolean;
}

/** The ways in which two traces are laid on each other: step on step, each from its beginning to its end, event on
 * event. */
const axes = ["step", "share", "event"] as const;
export type Axis = (typeof axes)[number];

/** One side's memory over its trace. */
export class Side {
	/** The first event of each sample, and behind the last one; the event after which most is active; those bytes. */
	readonly edges: Float64Array;
	readonly event: Float64Array;
	readonly active: Float64Array;
	private readonly stepFirst: Float64Array;
	private readonly stepLast: Float64Array;
	private readonly courses: Float64Array;

	/** A coarse one has of each step its peak alone, and no events. */
	constructor(
		readonly letter: "A" | "B",
		p: Packed<Header>,
		readonly head: SideHeader,
		readonly coarse: boolean,
	) {
		const first = p.read(head.first),
			peaks = p.read(head.step_peak);
		this.stepFirst = p.read(head.step_first);
		this.stepLast = p.read(head.step_last);
		this.edges = Float64Array.from([
			...(this.coarse ? peaks.keys() : first),
			this.coarse ? peaks.length : head.events,
		]);
		this.event = this.coarse ? Float64Array.from(peaks.keys()) : p.read(head.event);
		this.active = this.coarse ? peaks : p.read(head.active);
		this.courses = p.read(head.courses);
	}

	/** Number of samples. */
	get n(): number {
		return this.active.length;
	}

	get steps(): number {
		return this.coarse ? this.n : this.stepFirst.length;
	}

	/** Where an event lies on an axis: steps count from 0, with what is before the first from -1 on. */
	at(event: number, axis: Axis): number {
		if (axis === "event") return event;
		if (axis === "share") return (100 * event) / Math.max(this.edges[this.n], 1);
		if (this.coarse) return event;
		const { stepFirst: first, stepLast: last } = this,
			k = firstAt(first, event + 1) - 1; // the last step that has begun
		if (k < 0) return event / first[0] - 1;
		if (event <= last[k]) return k + (event - first[k]) / (last[k] + 1 - first[k]);
		if (k + 1 < first.length) return k + 1;
		return k + 1 + (event - last[k] - 1) / Math.max(this.edges[this.n] - last[k] - 1, 1);
	}

	/** The bytes of courses at each sample. */
	sum(rows: number[]): Float64Array {
		const out = new Float64Array(this.n);
		for (const row of rows) for (let i = 0; i < this.n; i++) out[i] += this.courses[row * this.n + i];
		return out;
	}
}

/** What pairs sum up to by one kind. */
export interface Table {
	kind: string;
	names: string[];
	a: Float64Array;
	b: Float64Array;
	state: Became[];
	noise: Float64Array;
	of: [Float64Array, Float64Array]; // by side and pair: one more than the row
	others: [Float64Array, Float64Array]; // the same by side and course that no pair has
	sure: boolean; // where no course is of a row, there is nothing of it
}

export class Changes {
	readonly sides: [Side, Side];
	readonly tables: Table[];
	readonly a: Float64Array; // by pair
	readonly b: Float64Array;
	readonly ways: Leaf["way"][];
	readonly course: [Float64Array, Float64Array]; // by side and pair: one more than the row of the side's courses
	readonly same: boolean;
	/** How many steps can be compared by their numbers. */
	readonly steps: number;
	/** Whether some lines are marked as of side A alone. */
	readonly onlyA: boolean;
	/** The axes that both sides have. */
	readonly axes: Axis[];

	constructor(p: Packed<Header>) {
		const h = p.header,
			text = p.ints(h.frames.text),
			origin = p.ints(h.frames.origin),
			parent = p.ints(h.nodes.parent),
			frame = p.ints(h.nodes.frame);
		// Where one side has no trace, the peaks of its steps are compared with those of the other.
		const coarse = h.sides.some(s => !s.events) && h.sides.every(s => s.step_peak.len);
		this.sides = [new Side("A", p, h.sides[0], coarse), new Side("B", p, h.sides[1], coarse)];
		this.same = h.same;
		this.steps = h.steps;
		this.onlyA = text.some(s => h.strings[s].endsWith(" (A)"));
		this.a = p.read(h.pairs.a);
		this.b = p.read(h.pairs.b);
		this.course = [p.read(h.pairs.course_a), p.read(h.pairs.course_b)];
		this.ways = Array.from(p.ints(h.pairs.node), node => {
			const way: Leaf["way"] = [];
			for (let n = node; n > 0; n = parent[n]) {
				const f = frame[n];
				way.unshift({ name: h.strings[text[f]], frame: f, origin: origin[f] });
			}
			return way;
		});
		this.tables = h.tables.map(t => ({
			kind: t.kind,
			names: Array.from(p.ints(t.name), s => h.strings[s]),
			a: p.read(t.a),
			b: p.read(t.b),
			state: t.state,
			noise: p.read(t.noise),
			of: [p.read(t.of_a), p.read(t.of_b)],
			others: [p.read(t.others_a), p.read(t.others_b)],
			sure: t.sure,
		}));
		const there = this.sides.filter(s => s.n);
		this.axes = axes.filter(
			axis =>
				there.length > 0 &&
				(axis !== "step" || (h.steps > 0 && there.every(s => s.steps))) &&
				(axis !== "event" || there.every(s => !s.coarse)),
		);
	}

	get pairs(): number {
		return this.a.length;
	}

	delta(pair: number): number {
		return this.b[pair] - this.a[pair];
	}
}

/** A line for each side: bytes at each of its samples, NaN where they are not known. */
export type Lines = [Float64Array, Float64Array];

/** What a state is called, by a's bytes and b's. */
export function stateOf(a: number, b: number): Became {
	if (a === b) return "same";
	if (a === 0) return "new";
	if (b === 0) return "gone";
	return b > a ? "grown" : "shrunk";
}

export interface State {
	axis: Axis;
	/** The part of the axis that is shown, and where on it the cursor is. */
	x0: number;
	x1: number;
	cursor: number;
	hover: number; // where the pointer is on the axis, NaN for nowhere
	select: boolean;
	/** What the table groups by, its order, and the row that is looked at, -1 for none. */
	by: string;
	sort: "a" | "b" | "delta" | "name";
	down: boolean;
	row: number;
	search: string;
	inverted: boolean;
	around: string;
	focus: string;
}

/** What is looked at: pairs, of each side those that count, and what it is called. */
interface Chosen {
	name: string;
	has: [(pair: number) => boolean, (pair: number) => boolean];
}

export class View extends Store<State> {
	/** What is looked at, null for all. */
	chosen: Chosen | null = null;
	private readonly laid = new Map<string, Float64Array>(); // edges, by side and axis

	constructor(readonly d: Changes) {
		super({
			axis: d.axes[0] ?? "event",
			x0: 0,
			x1: 0,
			cursor: 0,
			hover: NaN,
			select: false,
			by: "site",
			sort: "delta",
			down: true,
			row: -1,
			search: "",
			inverted: false,
			around: "",
			focus: "",
		});
		const { axis } = this.state;
		Object.assign(this.state, { x1: this.full(), cursor: this.moment(axis) });
		Object.assign(this.home, this.state);
	}

	/** The table that is shown. */
	get table(): Table {
		return this.d.tables.find(t => t.kind === this.state.by) ?? this.d.tables[0];
	}

	/** Where an axis begins: before the first steps where a side has events there. */
	private start(axis: Axis): number {
		return Math.min(0, ...this.d.sides.filter(s => s.n).map(s => s.at(s.edges[0], axis)));
	}

	/** Where a side's samples begin on the axis, and where the last one ends. */
	edges(side: Side, axis = this.state.axis): Float64Array {
		const key = side.letter + axis;
		let out = this.laid.get(key);
		if (!out) {
			const start = this.start(axis);
			this.laid.set(key, (out = side.edges.map(e => side.at(e, axis) - start)));
		}
		return out;
	}

	/** The length of the whole axis. */
	full(axis = this.state.axis): number {
		return Math.max(1e-9, ...this.d.sides.filter(s => s.n).map(s => this.edges(s, axis)[s.n]));
	}

	/** What is written at a place of the axis. */
	named(x: number): number {
		return x + this.start(this.state.axis);
	}

	get whole(): boolean {
		return this.state.x0 <= 0 && this.state.x1 >= this.full();
	}

	/** The middle of a sample. */
	middle(side: Side, sample: number, axis = this.state.axis): number {
		const edges = this.edges(side, axis);
		return (edges[sample] + edges[sample + 1]) / 2;
	}

	/** The sample that has an event, -1 for none. */
	sampleOf(side: Side, event: number): number {
		return event < 0 || side.coarse || !side.n ? -1 : firstAt(side.edges, event + 1) - 1;
	}

	/** A side's sample at a place of the axis, -1 where its trace is not. */
	sample(side: Side, x: number): number {
		const edges = this.edges(side);
		if (!side.n || !(x >= edges[0]) || x > edges[side.n]) return -1;
		const i = firstAt(edges, x);
		return edges[i] === x && i < side.n ? i : Math.max(i - 1, 0);
	}

	/** Where the moment is that is compared, on side B if that is in its trace. */
	private moment(axis: Axis): number {
		for (const s of [this.d.sides[1], this.d.sides[0]]) {
			const i = this.sampleOf(s, s.head.at);
			if (i >= 0) return this.middle(s, i, axis);
		}
		return 0;
	}

	/** Shows a part of the axis, within its bounds. */
	zoom(x0: number, x1: number): void {
		this.set(within(x0, x1, this.full(), this.full() / 1e4));
	}

	/** Lays the traces on each other in another way; the cursor stays at its event of side B, or else of A. */
	setAxis(axis: Axis): void {
		const { cursor } = this.state,
			side = [this.d.sides[1], this.d.sides[0]].find(s => this.sample(s, cursor) >= 0);
		const to = side ? this.middle(side, this.sample(side, cursor), axis) : 0;
		this.set({ axis, x0: 0, x1: this.full(axis), cursor: to, hover: NaN });
	}

	/** Goes to a state that is as the page opens but for a part, as a link has it. */
	restore(part: Partial<State>): void {
		const { x0, x1, ...rest } = { ...this.home, x0: 0, x1: Infinity, cursor: NaN, ...part },
			full = this.full(rest.axis);
		const cursor = rest.cursor >= 0 ? Math.min(rest.cursor, full) : this.moment(rest.axis);
		this.set({ ...rest, cursor, ...within(x0, Math.min(x1, full), full, full / 1e4) });
	}

	/** Changes the state. Who goes to a call looks at that, and no longer at a row. */
	override set(part: Partial<State>): void {
		const { focus, around } = this.state;
		if ((part.focus && part.focus !== focus) || (part.around && part.around !== around))
			part = { row: -1, ...part };
		super.set(part);
	}

	protected override follow(changed: Set<keyof State>): void {
		if (!(["by", "row", "focus", "around", "inverted"] as const).some(k => changed.has(k))) return;
		const { row, focus, around, inverted } = this.state,
			{ of, names } = this.table,
			{ ways } = this.d;
		this.chosen = null;
		if (row >= 0 && row < names.length) {
			const has = (side: number) => (pair: number) => of[side][pair] === row + 1;
			this.chosen = { name: names[row], has: [has(0), has(1)] };
		} else if (around || focus) {
			const path = focus.split("\n"),
				test = (pair: number) => {
					const way = ways[pair];
					if (around) return way.some(f => f.name === around);
					return path.every((name, i) => way[inverted ? way.length - 1 - i : i]?.name === name);
				};
			this.chosen = { name: around || path[path.length - 1], has: [test, test] };
		}
	}

	/** The calls of the first stack that is looked at, innermost first. */
	calls(): string[] {
		const pair = this.d.ways.findIndex((_, p) => this.has(p));
		return (this.d.ways[pair] ?? []).map(f => f.name).reverse();
	}

	/** Whether a pair is among those that are looked at. */
	has(pair: number): boolean {
		return !this.chosen || this.chosen.has.some(f => f(pair));
	}

	/** Whether the search finds a text. */
	finds(text: string): boolean {
		return text.toLowerCase().includes(this.state.search.toLowerCase());
	}

	/** The active bytes of both sides; of moments of one trace one line has them. */
	active(): Lines {
		const [a, b] = this.d.sides;
		return this.d.same && a.n && b.n ? [new Float64Array(a.n).fill(NaN), b.active] : [a.active, b.active];
	}

	/** Bytes of what is looked at on both sides, of moments of one trace in one line, and of how many of its stacks
	 * there is no curve. */
	curves(): { lines: Lines; missing: number } {
		const [a, b] = [this.curve(0), this.curve(1)],
			none = (line: Float64Array) => new Float64Array(line.length).fill(NaN);
		if (!this.d.same) return { lines: [a.bytes, b.bytes], missing: a.missing + b.missing };
		return a.held > b.held
			? { lines: [a.bytes, none(b.bytes)], missing: a.missing + b.alone }
			: { lines: [none(a.bytes), b.bytes], missing: b.missing + a.alone };
	}

	/** Bytes of what is looked at at each sample of a side, NaN where they are not known, how many of its stacks may
	 * lack there, and how many only this side has; and what all hold at the moment that is compared. */
	private curve(side: 0 | 1): { bytes: Float64Array; missing: number; alone: number; held: number } {
		const rows: number[] = [],
			{ a, b } = this.d,
			[size, other] = side ? [b, a] : [a, b],
			{ row } = this.state,
			unknown = { bytes: new Float64Array(this.d.sides[side].n).fill(NaN), missing: 0, alone: 0, held: 0 };
		if (row >= 0 && !this.table.sure && !(side ? this.table.b : this.table.a)[row]) return unknown;
		let missing = 0,
			alone = 0,
			held = 0;
		for (let p = 0; p < this.d.pairs; p++) {
			if (!this.chosen?.has[side](p) || !size[p]) continue;
			held += size[p];
			if (!other[p]) alone++;
			const course = this.d.course[side][p];
			if (course) rows.push(course - 1);
			else missing++;
		}
		const { head } = this.d.sides[side];
		if (row >= 0) {
			missing += head.left;
			this.table.others[side].forEach((of, i) => {
				if (of === row + 1) rows.push(head.pairs + i);
			});
		}
		if (row < 0 && !held) return unknown;
		return { bytes: this.d.sides[side].sum(rows), missing, alone, held };
	}
}

function word<K extends "axis" | "by" | "sort">(
	name: string,
	key: K,
	known: (v: View) => readonly string[],
): Field<View, State> {
	return {
		name,
		write: v => (v.state[key] === v.home[key] ? "" : v.state[key]),
		read: (text, v) => (known(v).includes(text) ? ({ [key]: text } as Partial<State>) : {}),
	};
}

function text(name: string, key: "search" | "around" | "focus"): Field<View, State> {
	return { name, write: v => v.state[key].slice(0, 2000), read: text => ({ [key]: text.slice(0, 2000) }) };
}

/** What links to the page say. */
export const fields: Field<View, State>[] = [
	word("axis", "axis", v => v.d.axes),
	{
		name: "at",
		write: v => (v.state.cursor === v.home.cursor ? "" : v.state.cursor.toFixed(3)),
		read: text => (/^\d{1,16}(\.\d{1,3})?$/.test(text) ? { cursor: Number(text) } : {}),
	},
	{
		name: "zoom",
		write: v => (v.whole ? "" : spanText(v.state.x0, v.state.x1)),
		read: text => {
			const s = span(text);
			return s ? { x0: s[0], x1: s[1] } : {};
		},
	},
	word("by", "by", v => v.d.tables.map(t => t.kind)),
	word("sort", "sort", () => ["a", "b", "delta", "name"]),
	{
		name: "up",
		write: v => (v.state.down ? "" : "1"),
		read: text => ({ down: text !== "1" }),
	},
	{
		name: "row",
		write: v => (v.state.row < 0 ? "" : String(v.state.row)),
		read: text => ({ row: /^\d{1,6}$/.test(text) ? Number(text) : -1 }),
	},
	text("find", "search"),
	{
		name: "inverted",
		write: v => (v.state.inverted ? "1" : ""),
		read: text => ({ inverted: text === "1" }),
	},
	text("around", "around"),
	text("focus", "focus"),
];
