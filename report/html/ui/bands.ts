// Bands are what a timeline stacks: allocations, or reserved ranges. They mirror
// snapana/report/internal/bands, so that a picture is the same whoever computes it.

/** As the event of an end: never. */
export const never = 0x7fffffff;

/** What was too small to be kept, at moments spread over the trace. */
export interface Rest {
	edge: Int32Array;
	event: Int32Array;
	groups: Float64Array[]; // bytes by category and moment
	total: Float64Array; // kept and rest together, by moment
	sum: Float64Array; // rest, by moment
}

const chunk = 256;

export class Bands {
	readonly n: number;
	/** Events after which the total changes, -1 first, and the total then. */
	readonly at: Int32Array;
	readonly total: Float64Array;
	readonly peak: number;
	private readonly highest: Int32Array; // by chunk of at, the row of the highest total
	private readonly lastEnd: Int32Array; // by chunk of rows, the latest end
	rest: Rest | null = null;
	/** The events after which no band is missing, though others have a rest. */
	known = { first: 0, last: -1 };

	/** Rows must be in order of birth. */
	constructor(
		readonly born: Int32Array,
		readonly freed: Int32Array,
		readonly size: Float64Array,
	) {
		const n = (this.n = born.length);
		const ends = new Float64Array(n);
		let k = 0;
		for (let i = 0; i < n; i++) if (freed[i] !== never) ends[k++] = freed[i] * 2 ** 21 + i;
		const sorted = ends.subarray(0, k).sort();
		const at = new Int32Array(n + k + 1),
			total = new Float64Array(n + k + 1);
		let m = 0,
			b = 0,
			e = 0,
			now = 0;
		at[0] = -1;
		while (b < n && born[b] < 0) now += size[b++];
		total[0] = now;
		while (b < n || e < k) {
			const death = e < k ? Math.floor(sorted[e] / 2 ** 21) : never;
			const event = b < n ? Math.min(born[b], death) : death;
			while (b < n && born[b] === event) now += size[b++];
			while (e < k && Math.floor(sorted[e] / 2 ** 21) === event) now -= size[sorted[e++] % 2 ** 21];
			if (event > at[m]) at[++m] = event;
			total[m] = now;
		}
		this.at = at.subarray(0, m + 1);
		this.total = total.subarray(0, m + 1);
		this.highest = new Int32Array(Math.ceil((m + 1) / chunk));
		let peak = 0;
		for (let i = 0; i <= m; i++) {
			const c = (i / chunk) | 0;
			if (i % chunk === 0 || total[i] > total[this.highest[c]]) this.highest[c] = i;
			peak = Math.max(peak, total[i]);
		}
		this.peak = peak;
		this.lastEnd = new Int32Array(Math.ceil(n / chunk));
		for (let i = 0; i < n; i++) {
			const c = (i / chunk) | 0;
			if (freed[i] > this.lastEnd[c]) this.lastEnd[c] = freed[i];
		}
	}

	/** The row of `at` that holds after an event. */
	rowAt(event: number): number {
		let lo = 0,
			hi = this.at.length;
		while (hi - lo > 1) {
			const mid = (lo + hi) >> 1;
			if (this.at[mid] <= event) lo = mid;
			else hi = mid;
		}
		return lo;
	}

	/** The total of the bands after an event; what was left out not included. */
	totalAt(event: number): number {
		return this.total[this.rowAt(event)];
	}

	/** The first event of from..to-1 after which the total is highest. */
	highestIn(from: number, to: number): { event: number; total: number } {
		let i = this.rowAt(from),
			best = i;
		for (i++; i < this.at.length && this.at[i] < to;) {
			const c = (i / chunk) | 0,
				next = (c + 1) * chunk;
			if (i % chunk === 0 && next <= this.at.length && this.at[next - 1] < to) {
				if (this.total[this.highest[c]] > this.total[best]) best = this.highest[c];
				i = next;
			} else {
				if (this.total[i] > this.total[best]) best = i;
				i++;
			}
		}
		return { event: Math.max(this.at[best], from), total: this.total[best] };
	}

	/** Whether no band is missing after any of the events first..last. */
	knows(first: number, last: number): boolean {
		return !this.rest || (first >= this.known.first && last <= this.known.last);
	}

	/** The first row that is born at an event or later. */
	bornFrom(event: number): number {
		let lo = 0,
			hi = this.n;
		while (lo < hi) {
			const mid = (lo + hi) >> 1;
			if (this.born[mid] < event) lo = mid + 1;
			else hi = mid;
		}
		return lo;
	}

	/** Calls f with each row, in order, that is live after an event of first..last. */
	overlapping(first: number, last: number, f: (row: number) => void): void {
		const young = this.bornFrom(first + 1),
			end = this.bornFrom(last + 1);
		const { freed, lastEnd } = this;
		for (let c = 0; c * chunk < young; c++) {
			if (lastEnd[c] <= first) continue;
			for (let i = c * chunk, stop = Math.min(i + chunk, young); i < stop; i++) if (freed[i] > first) f(i);
		}
		for (let i = young; i < end; i++) f(i);
	}

	/** The rows that are live after an event, oldest first. */
	liveAt(event: number): number[] {
		const out: number[] = [];
		this.overlapping(event, event, row => out.push(row));
		return out;
	}
}

/** The columns of a picture: each shows the moment of the highest total among its events. */
export interface Columns {
	n: number;
	edges: Int32Array;
	event: Int32Array;
	total: Float64Array;
	span: Int32Array | null; // row of the rest's moments, -1 where nothing is missing
}

/** Column i covers the events edges[i]..edges[i+1]-1 of a trace that has so many. */
export function columns(b: Bands, edges: Int32Array, events: number): Columns {
	const n = edges.length - 1;
	const out: Columns = {
		n,
		edges,
		event: new Int32Array(n),
		total: new Float64Array(n),
		span: b.rest && new Int32Array(n),
	};
	for (let i = 0; i < n; i++) {
		let from = edges[i],
			to = edges[i + 1];
		if (from >= to) {
			from = Math.min(from, events) - 1;
			to = from + 1;
			if (i > 0 && from <= out.event[i - 1]) {
				out.event[i] = out.event[i - 1];
				out.total[i] = out.total[i - 1];
				if (out.span) out.span[i] = out.span[i - 1];
				continue;
			}
		}
		const best = b.highestIn(from, to);
		out.event[i] = best.event;
		out.total[i] = best.total;
		if (!b.knows(from, to - 1)) rest(b.rest!, out, i, from, to);
		else if (out.span) out.span[i] = -1;
	}
	return out;
}

/** Prefers the moments of which everything is known, else adds what is nearest. */
function rest(r: Rest, out: Columns, i: number, from: number, to: number): void {
	let best = -1;
	for (let s = firstAt(r.event, from); s < r.event.length && r.event[s] < to; s++) {
		if (best < 0 || r.total[s] > r.total[best]) best = s;
	}
	if (best >= 0) {
		out.event[i] = r.event[best];
		out.total[i] = r.total[best];
		out.span![i] = best;
		return;
	}
	const s = Math.min(Math.max(firstAt(r.edge, from + 1) - 1, 0), r.event.length - 1);
	out.span![i] = s;
	out.total[i] += r.sum[s];
}

/** The first place of a rising list that is v or more. */
export function firstAt(list: ArrayLike<number>, v: number): number {
	let lo = 0,
		hi = list.length;
	while (lo < hi) {
		const mid = (lo + hi) >> 1;
		if (list[mid] < v) lo = mid + 1;
		else hi = mid;
	}
	return lo;
}
