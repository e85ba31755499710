// The history of one device, and what can be asked of it.

import { Bands, firstAt, never, Rest } from "./bands";
import {
	DeviceHeader,
	Failure,
	FreeClass,
	Growth,
	Holder,
	Label,
	Ladder,
	Mark,
	Packed,
	Place,
	readLadder,
	Replay,
	SourceFile,
	WindowHeader,
} from "./data";
import { Free } from "./free";

/** Where the code of a frame comes from. */
export const enum Origin {
	Plumbing,
	Core,
	Native,
	Library,
	Other,
	User,
}

/** The tables that all devices share. */
export class Tables {
	readonly strings: string[];
	readonly frameText: Int32Array;
	readonly frameOrigin: Int32Array;
	readonly nodeParent: Int32Array;
	readonly nodeFrame: Int32Array;
	readonly stackNode: Int32Array;
	readonly stackSite: Int32Array;
	readonly labels: Label[];
	readonly categories: string[];
	readonly holders: Holder[];
	readonly colors: string[]; // of categories, in the style sheet
	readonly free: FreeClass[];
	/** Where each frame is, of a program whose files were at hand: one more than a row of files, and a line. */
	readonly source: { dir: string; files: SourceFile[]; file: Int32Array; line: Int32Array; odd: Int32Array };

	constructor(p: Packed) {
		const h = p.header;
		this.strings = h.strings;
		this.frameText = p.ints(h.frames.text);
		this.frameOrigin = p.ints(h.frames.origin);
		this.nodeParent = p.ints(h.nodes.parent);
		this.nodeFrame = p.ints(h.nodes.frame);
		this.stackNode = p.ints(h.stacks.node);
		this.stackSite = p.ints(h.stacks.site);
		this.labels = h.labels;
		this.categories = h.categories;
		this.holders = h.holders;
		this.colors = h.colors;
		this.free = h.free;
		const { dir, files, file, line, odd } = h.source;
		this.source = { dir, files, file: p.ints(file), line: p.ints(line), odd: p.ints(odd) };
	}

	site(stack: number): string {
		return this.strings[this.stackSite[stack]];
	}

	frame(node: number): string {
		return this.strings[this.frameText[this.nodeFrame[node]]];
	}

	/** The frames of a stack, innermost first; without internals, only those worth a line. */
	frames(stack: number, internals = false): string[] {
		return this.visible(stack, internals).map(n => this.frame(n));
	}

	/** The nodes of a stack that are shown, innermost first, as attribution.visible chooses. */
	visible(stack: number, internals: boolean): number[] {
		const all: number[] = [];
		for (let n = this.stackNode[stack]; n > 0; n = this.nodeParent[n]) all.push(n);
		if (internals) return all;
		const origin = (n: number) => this.frameOrigin[this.nodeFrame[n]];
		const least = Math.min(
			all.reduce((best, n) => Math.max(best, origin(n)), 0),
			Origin.Library,
		);
		return all.filter(n => origin(n) >= least);
	}
}

export interface Group {
	name: string;
	bytes: number;
	requested: number;
	count: number;
	stack: number; // one of them
}

export interface Totals {
	reserved: number;
	active: number;
	allocated: number;
	requested: number;
}

export interface Segment {
	addr: number;
	size: number;
	place: number;
	live: number[];
	active: number;
}

interface Kinds {
	stack: Int32Array;
	rounded: Float64Array;
	requested: Float64Array;
	category: Int32Array;
	trust: Int32Array;
	place: Int32Array;
	label: Int32Array;
}

/** In the place of a row of holders: freed before the dump, or by the program at the dump. */
export const gone = -1,
	waits = -2;

/** Lives as columns, in order of birth. */
interface Lives {
	kinds: Kinds;
	kind: Int32Array;
	addr: Float64Array;
	generation: Int32Array;
	asked: Int32Array;
	born: Int32Array;
	freed: Int32Array;
	size: Float64Array;
	holder: Int32Array;
}

function readLives(p: Packed<unknown>, h: Pick<DeviceHeader, "kinds" | "lives">): Lives {
	const kinds = {
		stack: p.ints(h.kinds.stack),
		rounded: p.read(h.kinds.rounded),
		requested: p.read(h.kinds.requested),
		category: p.ints(h.kinds.category),
		trust: p.ints(h.kinds.trust),
		place: p.ints(h.kinds.place),
		label: p.ints(h.kinds.label),
	};
	const kind = p.ints(h.lives.kind),
		n = kind.length;
	const born = p.ints(h.lives.born),
		life = p.read(h.lives.life),
		gap = p.read(h.lives.gap),
		addr = p.read(h.lives.addr);
	const generation = p.ints(h.lives.older),
		lived = new Map<number, number>();
	const freed = new Int32Array(n),
		asked = new Int32Array(n),
		size = new Float64Array(n);
	const last = new Float64Array(kinds.stack.length),
		holder = new Int32Array(n).fill(gone),
		seen = p.ints(h.lives.holder);
	let s = 0;
	for (let k = 0; k < n; k++) {
		const a = (addr[k] = last[kind[k]] += addr[k]),
			before = lived.get(a) ?? 0;
		generation[k] += before;
		lived.set(a, before + 1);
		size[k] = Math.max(kinds.rounded[kind[k]], 0);
		freed[k] = life[k] ? born[k] + life[k] - 1 : never;
		asked[k] = gap[k] === 0 ? freed[k] : gap[k] === 1 ? -2 : life[k] ? freed[k] - gap[k] + 2 : born[k] + gap[k] - 2;
		if (!life[k] && s < seen.length) holder[k] = gap[k] ? (s++, waits) : seen[s++];
	}
	return { kinds, kind, addr, generation, asked, born, freed, size, holder };
}

/** Joins lives, in order of birth. */
function merge(a: Lives, b: Lives): Lives {
	const n = a.kind.length + b.kind.length,
		k = a.kinds.stack.length;
	const ints = (x: Int32Array, y: Int32Array) => {
		const out = new Int32Array(x.length + y.length);
		out.set(x);
		out.set(y, x.length);
		return out;
	};
	const floats = (x: Float64Array, y: Float64Array) => {
		const out = new Float64Array(x.length + y.length);
		out.set(x);
		out.set(y, x.length);
		return out;
	};
	const kinds = {
		stack: ints(a.kinds.stack, b.kinds.stack),
		rounded: floats(a.kinds.rounded, b.kinds.rounded),
		requested: floats(a.kinds.requested, b.kinds.requested),
		category: ints(a.kinds.category, b.kinds.category),
		trust: ints(a.kinds.trust, b.kinds.trust),
		place: ints(a.kinds.place, b.kinds.place),
		label: ints(a.kinds.label, b.kinds.label),
	};
	const out: Lives = {
		kinds,
		kind: new Int32Array(n),
		addr: new Float64Array(n),
		generation: new Int32Array(n),
		asked: new Int32Array(n),
		born: new Int32Array(n),
		freed: new Int32Array(n),
		size: new Float64Array(n),
		holder: new Int32Array(n),
	};
	for (let i = 0, x = 0, y = 0; i < n; i++) {
		const second = x === a.kind.length || (y < b.kind.length && b.born[y] < a.born[x]);
		const from = second ? b : a,
			row = second ? y++ : x++;
		out.kind[i] = from.kind[row] + (second ? k : 0);
		out.addr[i] = from.addr[row];
		out.generation[i] = from.generation[row];
		out.asked[i] = from.asked[row];
		out.born[i] = from.born[row];
		out.freed[i] = from.freed[row];
		out.size[i] = from.size[row];
		out.holder[i] = from.holder[row];
	}
	return out;
}

/** What is left of a rest when some of its lives have bands. */
function without(r: Rest, l: Lives): Rest {
	const n = r.event.length,
		sum = r.sum.slice();
	const less: (Float64Array | undefined)[] = [];
	for (let i = 0; i < l.kind.length; i++) {
		const g = (less[r.groups.length > 1 ? l.kinds.category[l.kind[i]] : 0] ??= new Float64Array(n + 1));
		g[firstAt(r.event, l.born[i])] += l.size[i];
		g[firstAt(r.event, l.freed[i])] -= l.size[i];
	}
	const groups = r.groups.map((bytes, k) => {
		const g = less[k];
		if (!g) return bytes;
		const left = new Float64Array(n);
		let now = 0;
		for (let s = 0; s < n; s++) {
			now += g[s];
			left[s] = bytes[s] - now;
			sum[s] -= now;
		}
		return left;
	});
	return { edge: r.edge, event: r.event, groups, sum, total: r.total };
}

function poolWords(p: Place): string[] {
	return [p.kind === "unknown" ? "" : p.kind + " pool", p.pool && "private pool " + p.pool].filter(w => w);
}

/** A setting that was replayed, with its reserved bytes. */
type Replayed = Omit<Replay, "ladder"> & { bytes: Float64Array; ladder: Ladder };

export class Device {
	readonly ordinal: number;
	readonly events: number;
	readonly marks: Mark[];
	readonly places: Place[];
	private readonly stretches: { at: number; addr: bigint }[]; // rising
	readonly leftOut: { lives: number; of: number; ranges: number };
	readonly steps: { unit: string; first: Int32Array; last: Int32Array; names: string[] };

	lives: Bands;
	kind!: Int32Array;
	addr!: Float64Array; // as stretches count; so are all addresses but those of hex and count
	generation!: Int32Array; // blocks that lived at the address before
	asked!: Int32Array; // the event at which the program freed a block
	kinds!: Kinds;
	holder!: Int32Array; // row of Tables.holders, or gone or waits
	/** What each holder has at the dump, in the page or not; empty where no one looked. */
	readonly held: { bytes: Float64Array; blocks: Float64Array };
	readonly growth: Growth[];
	/** A server gives what is left out where one looks. */
	served = false;
	private readonly page: Lives; // the lives that are always here
	private pageRest: Rest | null = null;
	private knownAt = -2; // an event after which nothing is missing

	readonly ranges: Bands;
	readonly rangeAddr: Float64Array;
	readonly rangePlace: Int32Array;

	/** Events and microseconds since the first; empty without times. */
	readonly clock: { event: Int32Array; micros: Float64Array; exact: boolean };

	free: Free;
	readonly failures: Failure[];
	readonly rules: DeviceHeader["rules"];
	/** Reserved memory under other settings: the most in each of the runs of events that end at last. */
	readonly whatif: { last: Int32Array; limit: number; best: number; replays: Replayed[] };

	constructor(
		p: Packed,
		i: number,
		readonly tables: Tables,
	) {
		const h = p.header.devices[i];
		this.ordinal = h.ordinal;
		this.events = h.events;
		this.marks = h.marks;
		this.places = h.places;
		this.stretches = h.stretches.map(s => ({ at: s.at, addr: BigInt(s.addr) }));
		this.held = { bytes: p.read(h.held.bytes), blocks: p.read(h.held.blocks) };
		this.growth = h.growth;
		this.failures = h.failures;
		this.rules = h.rules;
		this.leftOut = h.left_out;
		this.steps = {
			unit: h.steps.unit,
			first: p.ints(h.steps.first),
			last: p.ints(h.steps.last),
			names: h.steps.names,
		};
		this.clock = { event: p.ints(h.clock.event), micros: p.read(h.clock.micros), exact: h.clock.exact };
		this.page = readLives(p, h);
		this.lives = this.have(this.page);
		if (h.rest.event.len) this.setRest(p, i);

		const rborn = p.ints(h.ranges.born),
			rlife = p.read(h.ranges.life);
		this.ranges = new Bands(
			rborn,
			rborn.map((b, k) => (rlife[k] ? b + rlife[k] - 1 : never)),
			p.read(h.ranges.size),
		);
		this.rangeAddr = p.read(h.ranges.addr);
		this.rangePlace = p.ints(h.ranges.place);

		this.whatif = {
			...h.whatif,
			last: p.ints(h.whatif.last),
			replays: h.whatif.replays.map(r => ({ ...r, bytes: p.read(r.reserved), ladder: readLadder(p, r) })),
		};
		const event = p.ints(h.free.event),
			bytes = h.free.bytes.map(c => p.read(c));
		this.free = new Free(this, {
			event,
			bytes,
			sum: Float64Array.from(event, (_, k) => bytes.reduce((a, b) => a + b[k], 0)),
		});
	}

	private have(l: Lives): Bands {
		this.kinds = l.kinds;
		this.kind = l.kind;
		this.addr = l.addr;
		this.generation = l.generation;
		this.asked = l.asked;
		this.holder = l.holder;
		return new Bands(l.born, l.freed, l.size);
	}

	/** Takes in what the page leaves out of a part of the trace, in the place of what came before. */
	adopt(p: Packed<WindowHeader>): void {
		const h = p.header,
			more = readLives(p, h),
			rest = this.pageRest;
		if (!rest) return;
		this.lives = this.have(merge(this.page, more));
		this.lives.rest = without(rest, more);
		this.lives.known = h.all ? { first: h.first, last: h.last } : { first: 0, last: -1 };
		this.knownAt = h.all_at ? h.at : -2;
		this.free = new Free(this, this.free.samples);
	}

	private setRest(p: Packed, i: number): void {
		const r = p.header.devices[i].rest;
		const event = p.ints(r.event),
			groups = r.bytes.map(c => p.read(c));
		const sum = new Float64Array(event.length),
			total = new Float64Array(event.length);
		for (let s = 0; s < event.length; s++) {
			for (const g of groups) sum[s] += g[s];
			total[s] = sum[s] + this.lives.totalAt(event[s]);
		}
		this.lives.rest = this.pageRest = { edge: p.ints(r.edge), event, groups, sum, total };
	}

	get hasTimes(): boolean {
		return this.clock.event.length > 1;
	}

	/** Microseconds since the first event. */
	timeOf(event: number): number {
		const { event: e, micros: m } = this.clock;
		const i = firstAt(e, event);
		if (i >= e.length) return m[m.length - 1];
		if (i === 0 || e[i] === event) return m[i];
		return m[i - 1] + ((m[i] - m[i - 1]) * (event - e[i - 1])) / (e[i] - e[i - 1]);
	}

	/** The first event at a time or later. */
	eventAt(us: number): number {
		const { event: e, micros: m } = this.clock;
		const i = firstAt(m, us);
		if (i === 0) return 0;
		if (i >= m.length) return this.events;
		const part = (us - m[i - 1]) / Math.max(m[i] - m[i - 1], 1);
		return Math.ceil(e[i - 1] + part * (e[i] - e[i - 1]));
	}

	/** Says when an event was. */
	when(event: number): string {
		return event < 0 || !this.hasTimes ? "" : "+" + micro(this.timeOf(event));
	}

	/** Totals right after an event, of all that is in the page. */
	totals(event: number): Totals {
		const t = { reserved: this.ranges.totalAt(event), active: 0, allocated: 0, requested: 0 };
		for (const row of this.lives.liveAt(event)) {
			t.active += this.lives.size[row];
			t.requested += this.kinds.requested[this.kind[row]];
			if (this.asked[row] > event) t.allocated += this.lives.size[row];
		}
		return t;
	}

	/** What was live after an event and is not in the page, by category. It is exact at the
	 * moments of the rest, and elsewhere that of the nearest. */
	restAt(event: number): Float64Array | null {
		const r = this.lives.rest;
		if (!r || event === this.knownAt || this.lives.knows(event, event)) return null;
		const s = Math.min(Math.max(firstAt(r.edge, event + 1) - 1, 0), r.event.length - 1);
		return Float64Array.from(r.groups, g => g[s]);
	}

	stackOf(row: number): number {
		return this.kinds.stack[this.kind[row]];
	}

	/** The name of a block, as memory_viz has it. */
	blockName(row: number): string {
		return `b${this.hex(this.addr[row]).slice(2)}_${this.generation[row]}`;
	}

	/** An address as people write it: numbers hold it as the distance from where its stretch begins. */
	hex(at: number): string {
		const s = this.stretches.findLast(s => s.at <= at) ?? { at: 0, addr: 0n };
		return "0x" + (s.addr + BigInt(at - s.at)).toString(16);
	}

	/** An address as the stretches count it, -1 for one that lies in none. */
	count(addr: bigint): number {
		const i = this.stretches.findLastIndex(s => s.addr <= addr);
		if (i < 0) return -1;
		const at = this.stretches[i].at + Number(addr - this.stretches[i].addr);
		return at < (this.stretches[i + 1]?.at ?? 2 ** 53) ? at : -1;
	}

	/** Whether an address lies in a block. */
	holds(row: number, addr: number): boolean {
		return addr >= this.addr[row] && addr < this.addr[row] + this.lives.size[row];
	}

	/** What was noted beside an allocation, and then what the program said of it, by event. */
	notes(row: number): { kind: string; text: string }[] {
		return [...this.tables.labels[this.kinds.label[this.kind[row]]].notes, ...this.annotations(row)];
	}

	private annotations(row: number): Mark[] {
		const l = this.lives;
		return this.marks.filter(
			m =>
				m.kind === "annotation" &&
				m.addr === this.addr[row] &&
				m.event >= l.born[row] &&
				m.event < l.freed[row],
		);
	}

	/** The rows of which the program said something that passes a test. */
	annotated(test: (s: string) => boolean): Set<number> {
		const marks = this.marks.filter(m => m.kind === "annotation" && test(m.text)),
			out = new Set<number>(),
			l = this.lives;
		if (!marks.length) return out;
		const by = new Map<number, Mark[]>();
		for (const m of marks) by.set(m.addr, [...(by.get(m.addr) ?? []), m]);
		for (let row = 0; row < l.n; row++)
			if (by.get(this.addr[row])?.some(m => m.event >= l.born[row] && m.event < l.freed[row])) out.add(row);
		return out;
	}

	/** Groups rows, most bytes first. */
	group(rows: number[], name: (row: number) => string): Group[] {
		const all = new Map<string, Group>();
		for (const row of rows) {
			const key = name(row);
			let g = all.get(key);
			if (!g) all.set(key, (g = { name: key, bytes: 0, requested: 0, count: 0, stack: this.stackOf(row) }));
			g.bytes += this.lives.size[row];
			g.requested += this.kinds.requested[this.kind[row]];
			g.count++;
		}
		return [...all.values()].sort((a, b) => b.bytes - a.bytes || (a.name < b.name ? -1 : 1));
	}

	placeName(place: number): string {
		const p = this.places[place];
		if (!p.kind) return "in no known segment";
		const words = [...poolWords(p), p.stream ? "stream " + p.stream : "", p.expandable ? "expandable" : ""];
		return words.filter(w => w).join(", ") || "default pool";
	}

	poolName(place: number): string {
		const p = this.places[place];
		return p.kind ? poolWords(p).join(", ") || "default pool" : "in no known segment";
	}

	/** Stream and pool, also where they are the default ones. */
	whereName(place: number): string {
		const p = this.places[place];
		return p.kind && !p.stream ? "default stream, " + this.placeName(place) : this.placeName(place);
	}

	streamName(place: number): string {
		const p = this.places[place];
		return !p.kind ? "in no known segment" : p.stream ? "stream " + p.stream : "default stream";
	}

	/** The segments after an event by address, neighbors of one expandable segment joined. */
	segments(event: number): Segment[] {
		const rows = this.ranges.liveAt(event).sort((a, b) => this.rangeAddr[a] - this.rangeAddr[b]);
		const out: Segment[] = [];
		for (const r of rows) {
			const before = out[out.length - 1],
				addr = this.rangeAddr[r],
				place = this.rangePlace[r];
			if (
				before &&
				this.places[place].expandable &&
				before.place === place &&
				before.addr + before.size === addr
			) {
				before.size += this.ranges.size[r];
			} else {
				out.push({ addr, size: this.ranges.size[r], place, live: [], active: 0 });
			}
		}
		const live = this.lives.liveAt(event).sort((a, b) => this.addr[a] - this.addr[b]);
		let s = 0;
		for (const row of live) {
			while (s < out.length && out[s].addr + out[s].size <= this.addr[row]) s++;
			if (s === out.length) break;
			if (this.addr[row] < out[s].addr) continue;
			out[s].live.push(row);
			out[s].active += this.lives.size[row];
		}
		return out;
	}
}

import { micros as micro } from "./format";
