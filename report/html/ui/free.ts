// Free memory: what is reserved and not allocated, by what keeps it from use. It mirrors
// snapana/analyze/fragmentation, so that the figures are the same whoever computes them.

import { Columns, firstAt, never } from "./bands";
import { abgr, css, Scheme } from "./colors";
import { FreeClass } from "./data";
import { Device } from "./model";
import { Frame, nothing } from "./raster";

/** Free memory at moments of a trace: bytes by class, and their sum. */
export interface Moments {
	event: ArrayLike<number>;
	bytes: ArrayLike<number>[];
	sum: ArrayLike<number>;
}

/** A segment and what is live in it, by address. */
interface Part {
	addr: number;
	end: number;
	place: number;
	rows: number[];
	active: number;
	pages: number; // bytes of whole pages that are free beside what is live
	sums: number[];
}

/** Rows with from < of[row] <= to, in the order of of. */
function within(of: ArrayLike<number>, n: number, from: number, to: number): Int32Array {
	const keys = new Float64Array(n);
	let k = 0;
	for (let i = 0; i < n; i++) if (of[i] > from && of[i] <= to) keys[k++] = of[i] * 2 ** 21 + i;
	return Int32Array.from(keys.subarray(0, k).sort(), v => v % 2 ** 21);
}

/** Follows the free memory from one event to another: every byte of what was live in between must be known. */
export function sweep(dev: Device, first: number, last: number): Moments {
	const { lives, ranges, addr, rangeAddr, asked, places } = dev,
		{ size } = lives;
	const parts: Part[] = [],
		outside = new Set<number>();
	const sums = places.map(() => [0, 0, 0, 0]); // reserved, releasable, hard, soft by place
	let pending = 0,
		now = first,
		main = -1; // main is the stream with the most reserved memory, -1 unknown
	const end = (row: number) => addr[row] + size[row];
	const key = places.map(p => [p.stream, p.pool, p.kind].join()),
		stretch = places.map(p => (p.expandable ? p.stream + " " + p.pool : ""));

	/** The first of n places for which something is true, which then is so of all that follow. */
	const search = (n: number, is: (i: number) => boolean) => {
		let lo = 0;
		while (lo < n) {
			const mid = (lo + n) >> 1;
			if (is(mid)) n = mid;
			else lo = mid + 1;
		}
		return lo;
	};
	const after = (at: number) => search(parts.length, i => parts[i].addr > at);
	const rowAfter = (rows: number[], at: number) => search(rows.length, i => addr[rows[i]] >= at);
	const whole = (p: Part, from: number, to: number) => {
		const { page } = places[p.place];
		if (!page || to - from < page) return 0;
		return Math.max(Math.floor((to - p.addr) / page) - Math.ceil((from - p.addr) / page), 0) * page;
	};
	/** The whole pages before the k-th row of a part and behind the one before it, free and in one hole. */
	const gap = (p: Part, k: number) =>
		whole(p, k > 0 ? end(p.rows[k - 1]) : p.addr, k < p.rows.length ? addr[p.rows[k]] : p.end);
	const head = (p: Part) => (p.rows.length ? addr[p.rows[0]] : p.end) - p.addr;
	const tail = (p: Part) => p.end - (p.rows.length ? end(p.rows[p.rows.length - 1]) : p.addr);
	const touch = (a?: Part, b?: Part) =>
		a && b && a.end === b.addr && key[a.place] === key[b.place] && tail(a) > 0 && head(b) > 0;
	const add = (p: Part, sign: number) => {
		const to = sums[p.place];
		for (let i = 0; i < 4; i++) to[i] += sign * p.sums[i];
	};
	/** Adds up anew what is free in a part and its neighbors, whose edges matter to each other. */
	const weigh = (i: number) => {
		for (let k = Math.max(i - 1, 0); k <= i + 1 && k < parts.length; k++) {
			const p = parts[k],
				free = p.end - p.addr - p.active;
			add(p, -1);
			const n = p.rows.length,
				pages = n ? p.pages : free,
				soft = n
					? (touch(parts[k - 1], p) ? head(p) - gap(p, 0) : 0) +
						(touch(p, parts[k + 1]) ? tail(p) - gap(p, n) : 0)
					: 0;
			p.sums = [p.end - p.addr, pages, free - pages - soft, soft];
			add(p, 1);
		}
	};
	const drop = (i: number) => {
		add(parts.splice(i, 1)[0], -1);
		main = -1;
	};
	const put = (from: number, to: number, place: number, rows: number[]) => {
		main = -1;
		const i = after(from);
		const p: Part = {
			addr: from,
			end: to,
			place,
			rows,
			active: rows.reduce((a, r) => a + size[r], 0),
			pages: 0,
			sums: [0, 0, 0, 0],
		};
		if (places[place].page) for (let k = 0; k <= rows.length; k++) p.pages += gap(p, k);
		parts.splice(i, 0, p);
		return i;
	};
	const waits = (row: number) => asked[row] <= now;
	const enter = (row: number) => {
		const i = after(addr[row]) - 1,
			p = parts[i],
			k = p ? rowAfter(p.rows, addr[row]) : 0;
		if (
			!p ||
			end(row) > p.end ||
			(k > 0 && end(p.rows[k - 1]) > addr[row]) ||
			(k < p.rows.length && addr[p.rows[k]] < end(row))
		) {
			outside.add(row);
			return;
		}
		p.pages -= gap(p, k);
		p.rows.splice(k, 0, row);
		p.pages += gap(p, k) + gap(p, k + 1);
		p.active += size[row];
		if (waits(row)) pending += size[row];
		weigh(i);
	};
	const leave = (row: number) => {
		if (outside.delete(row)) return;
		const i = after(addr[row]) - 1,
			p = parts[i];
		const k = rowAfter(p.rows, addr[row]);
		p.pages -= gap(p, k) + gap(p, k + 1);
		p.rows.splice(k, 1);
		p.pages += gap(p, k);
		p.active -= size[row];
		if (asked[row] < now) pending -= size[row];
		weigh(i);
	};
	const begin = (r: number) => {
		let from = rangeAddr[r],
			to = from + ranges.size[r],
			place = dev.rangePlace[r],
			rows: number[] = [];
		const i = after(from),
			joins = stretch[place];
		if (joins && parts[i]?.addr === to && stretch[parts[i].place] === joins) {
			({ end: to, place, rows } = parts[i]);
			drop(i);
		}
		if (joins && parts[i - 1]?.end === from && stretch[parts[i - 1].place] === joins) {
			const before = parts[i - 1];
			({ addr: from, place } = before);
			rows = before.rows.concat(rows);
			drop(i - 1);
		}
		weigh(put(from, to, place, rows));
		for (const row of [...outside]) {
			if (addr[row] < from || addr[row] >= to) continue;
			outside.delete(row);
			enter(row);
		}
	};
	const cut = (r: number) => {
		const from = rangeAddr[r],
			to = from + ranges.size[r],
			i = after(from) - 1,
			p = parts[i];
		if (!p || p.end < to) return;
		drop(i);
		const a = rowAfter(p.rows, from),
			z = rowAfter(p.rows, to);
		for (const row of p.rows.slice(a, z)) {
			outside.add(row);
			if (asked[row] < now) pending -= size[row];
		}
		if (p.addr < from) put(p.addr, from, p.place, p.rows.slice(0, a));
		if (to < p.end) put(to, p.end, p.place, p.rows.slice(z));
		weigh(after(from) - 1);
		weigh(after(to) - 1);
	};

	const out: Moments & { event: number[]; bytes: number[][]; sum: number[] } = {
		event: [],
		bytes: dev.tables.free.map(() => []),
		sum: [],
	};
	const ooms = new Map(dev.marks.filter(m => m.kind === "oom").map(m => [m.event, m.stream])),
		turns = Int32Array.from([...ooms.keys()].flatMap(e => [e, e + 1]).sort((a, b) => a - b));
	const largest = () => {
		const bytes = new Map([[0, 0]]);
		places.forEach((p, i) => p.pool || bytes.set(p.stream, (bytes.get(p.stream) ?? 0) + sums[i][0]));
		return [...bytes].sort((a, b) => b[1] - a[1] || a[0] - b[0])[0][0];
	};
	const record = () => {
		if (main < 0) main = largest();
		const stream = ooms.get(now) ?? main;
		const v = [0, 0, 0, 0, pending];
		for (let i = 0; i < places.length; i++) {
			const p = places[i],
				of = sums[i],
				ours = !p.pool && p.stream === stream;
			v[p.pool ? 3 : 0] += of[1];
			v[ours ? 1 : 3] += of[2];
			v[ours ? 2 : 3] += of[3];
		}
		out.event.push(now);
		for (let k = 0; k < 5; k++) out.bytes[k].push(v[k]);
		out.sum.push(v[0] + v[1] + v[2] + v[3] + v[4]);
	};

	for (let r = 0; r < ranges.n && ranges.born[r] <= first; r++) if (ranges.freed[r] > first) begin(r);
	lives.overlapping(first, first, enter);
	record();
	const of = (list: ArrayLike<number>, n: number) => within(list, n, first, Math.min(last, never - 1));
	const steps: [ArrayLike<number>, Int32Array, (row: number) => void][] = [
		[lives.freed, of(lives.freed, lives.n), leave],
		[ranges.freed, of(ranges.freed, ranges.n), cut],
		[
			asked,
			of(asked, lives.n),
			row => {
				if (asked[row] > lives.born[row] && asked[row] < lives.freed[row] && !outside.has(row))
					pending += size[row];
			},
		],
		[ranges.born, of(ranges.born, ranges.n), begin],
		[lives.born, of(lives.born, lives.n), enter],
		[turns, of(turns, turns.length), () => {}],
	];
	const done = steps.map(() => 0);
	for (;;) {
		now = never;
		for (let i = 0; i < steps.length; i++) {
			const [of, rows] = steps[i];
			if (done[i] < rows.length) now = Math.min(now, of[rows[done[i]]]);
		}
		if (now === never) return out;
		for (let i = 0; i < steps.length; i++) {
			const [of, rows, act] = steps[i];
			for (; done[i] < rows.length && of[rows[done[i]]] === now; done[i]++) act(rows[done[i]]);
		}
		record();
	}
}

/** What is known of the free memory of a device. */
export class Free {
	private readonly first: number = 0;
	private readonly last: number = -1; // all is known after first..last
	private every: Moments | null = null;
	private most = 0;

	constructor(
		private readonly dev: Device,
		readonly samples: Moments,
	) {
		const { lives } = dev;
		if (!dev.leftOut.ranges)
			[this.first, this.last] = lives.rest ? [lives.known.first, lives.known.last] : [-1, dev.events - 1];
	}

	/** Every moment of which all is known. */
	private get exact(): Moments {
		return (this.every ??=
			this.last < this.first ? { event: [], bytes: [], sum: [] } : sweep(this.dev, this.first, this.last));
	}

	/** The most that is free at any moment. */
	get peak(): number {
		return (this.most ||= Math.max(highest(this.exact.sum), highest(this.samples.sum)));
	}

	/** The classes right after an event, or at the nearest moment at which they were measured. */
	at(event: number): { event: number; bytes: number[] } | null {
		const { dev, samples } = this;
		if (this.every && event >= this.first && event <= this.last)
			return { ...this.moment(this.every, firstAt(this.every.event, event + 1) - 1), event };
		if (!dev.leftOut.ranges && !dev.restAt(event)) return this.moment(sweep(dev, event, event), 0);
		return samples.event.length ? this.moment(samples, nearest(samples, event)) : null;
	}

	private moment(m: Moments, i: number): { event: number; bytes: number[] } {
		return { event: m.event[i], bytes: m.bytes.map(b => b[i]) };
	}

	/** The columns of a picture: each shows the moment with the most that is free among its events. */
	columns(edges: Int32Array): FreeColumns {
		const n = edges.length - 1,
			bytes = this.dev.tables.free.map(() => new Float64Array(n));
		const out: FreeColumns = {
			n,
			edges,
			event: new Int32Array(n),
			total: new Float64Array(n),
			span: null,
			bytes,
			sampled: false,
		};
		for (let c = 0; c < n; c++) {
			const from = Math.min(edges[c], this.dev.events - 1),
				to = Math.max(edges[c + 1], from + 1);
			const exact = from >= this.first && to - 1 <= this.last,
				m = exact ? this.exact : this.samples;
			if (!m.event.length) continue;
			let best = exact ? firstAt(m.event, from + 1) - 1 : nearest(m, from);
			for (let i = firstAt(m.event, from); i < m.event.length && m.event[i] < to; i++)
				if (m.sum[i] > m.sum[best] || (m.event[best] < from && !exact)) best = i;
			out.event[c] = exact ? Math.max(m.event[best], from) : m.event[best];
			out.total[c] = m.sum[best];
			out.sampled ||= !exact;
			bytes.forEach((b, k) => (b[c] = m.bytes[k][best]));
		}
		return out;
	}
}

export interface FreeColumns extends Columns {
	bytes: Float64Array[];
	sampled: boolean;
}

function highest(list: ArrayLike<number>): number {
	let most = 0;
	for (let i = 0; i < list.length; i++) most = Math.max(most, list[i]);
	return most;
}

function nearest(m: Moments, event: number): number {
	const i = firstAt(m.event, event);
	return i === m.event.length || (i > 0 && event - m.event[i - 1] < m.event[i] - event) ? i - 1 : i;
}

/** The colors of the classes. */
export function freeScheme(classes: FreeClass[]): Scheme {
	const legend = classes.map(c => ({ name: c.name, css: css(c.color) })),
		groups = legend.map(g => ({ name: g.name, color: abgr(g.css) }));
	return { legend, groups, of: () => 0, color: () => 0, group: () => 0, restGroup: () => 0 };
}

/** Draws the classes on each other, with lo..hi bytes over the height. */
export function drawFree(f: Frame, cols: FreeColumns, lo: number, hi: number, scheme: Scheme, back: number): void {
	const { width: W, height: H, pixels, ids } = f,
		row = (v: number) => Math.min(Math.max(Math.floor(((v - lo) / (hi - lo)) * H), 0), H);
	pixels.fill(back);
	ids.fill(nothing);
	f.merged = new Int32Array(cols.bytes.length);
	for (let c = 0; c < cols.n; c++) {
		let sum = 0,
			y = 0;
		cols.bytes.forEach((b, k) => {
			const top = row((sum += b[c])),
				{ color } = scheme.groups[k];
			for (; y < top; y++) {
				pixels[(H - 1 - y) * W + c] = color;
				ids[(H - 1 - y) * W + c] = -2 - k;
			}
		});
	}
}
