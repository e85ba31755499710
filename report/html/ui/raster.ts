// Draws bands into a framebuffer. The processor draws 100,000 of them in a few milliseconds,
// where a browser without a GPU needs seconds for as many rectangles.

import { Bands, Columns } from "./bands";

/** How rows are colored, and how those too small to be seen are summed. Colors are ABGR. */
export interface Paint {
	color: (row: number) => number;
	group: (row: number) => number;
	groups: { name: string; color: number }[];
	/** The group that sums a category of what is not in the page. */
	restGroup: (category: number) => number;
}

/** In the buffer of ids: nothing is there, or else what is summed, -2 less its group. */
export const nothing = -1;

export class Frame {
	readonly pixels: Uint32Array<ArrayBuffer>;
	readonly ids: Int32Array;
	/** Bytes below each column's summed part, and how many bands each group sums. */
	readonly own: Float64Array;
	merged: Int32Array = new Int32Array(0);

	constructor(
		readonly width: number,
		readonly height: number,
	) {
		this.pixels = new Uint32Array(width * height);
		this.ids = new Int32Array(width * height);
		this.own = new Float64Array(width);
	}
}

/** How many columns all bands together may have in a picture, to be drawn within a frame. */
const budget = 5_000_000;

/** Which bands a picture shows, and in which columns. */
interface Visible {
	n: number;
	row: Int32Array;
	first: Int32Array;
	last: Int32Array;
}

let room: Visible = { n: 0, row: new Int32Array(0), first: new Int32Array(0), last: new Int32Array(0) };

/** Finds the bands that live at the moments of the columns. The result is good until the next call. */
function visible(b: Bands, moments: Int32Array, n: number): Visible {
	if (room.row.length < b.n)
		room = { n: 0, row: new Int32Array(b.n), first: new Int32Array(b.n), last: new Int32Array(b.n) };
	const { born, freed } = b,
		out = room;
	let from = 0,
		k = 0;
	b.overlapping(moments[0], moments[n - 1], i => {
		while (from < n && moments[from] < born[i]) from++;
		const end = freed[i];
		if (from >= n || moments[from] >= end) return;
		let last = n - 1;
		if (moments[last] >= end) {
			let a = from;
			while (last - a > 1) {
				const mid = (a + last) >> 1;
				if (moments[mid] >= end) last = mid;
				else a = mid;
			}
			last = a;
		}
		out.row[k] = i;
		out.first[k] = from;
		out.last[k++] = last;
	});
	out.n = k;
	return out;
}

/** The size from which bands are drawn one by one: 0 unless they are too many. */
function smallest(b: Bands, seen: Visible): number {
	const columns = new Float64Array(64);
	for (let v = 0; v < seen.n; v++)
		columns[Math.ceil(Math.log2(b.size[seen.row[v]] + 1))] += seen.last[v] - seen.first[v] + 1;
	let sum = 0;
	for (let i = 63; i >= 0; i--) {
		sum += columns[i];
		if (sum > budget) return 2 ** i;
	}
	return 0;
}

/**
 * Draws the bands with lo..hi bytes over the height, each on those that are older. Where they
 * are too many, the smallest lie on top, summed by group and striped; with merge all do, plain.
 */
export function draw(
	f: Frame,
	b: Bands,
	cols: Columns,
	lo: number,
	hi: number,
	merge: boolean,
	p: Paint,
	back: number,
): void {
	const { width: W, height: H, pixels, ids, own } = f;
	pixels.fill(back);
	ids.fill(nothing);
	own.fill(0);
	const merged = new Int32Array(p.groups.length);
	const sums = p.groups.map(() => null as Float64Array | null);
	const scale = H / (hi - lo);
	const moments = cols.event,
		n = cols.n;
	/** Fills rows y0..y1-1, counted from below, of columns c0..c1-1. */
	const fill = (c0: number, c1: number, y0: number, y1: number, color: number, id: number) => {
		const edge = y1 - y0 > 3 ? tint(color, back, 0.3) : color;
		for (let y = y0; y < y1; y++) {
			const paint = y === y1 - 1 ? edge : color,
				from = (H - 1 - y) * W + c0,
				to = from + c1 - c0;
			if (to - from > 24) {
				pixels.fill(paint, from, to);
				ids.fill(id, from, to);
				continue;
			}
			for (let at = from; at < to; at++) {
				pixels[at] = paint;
				ids[at] = id;
			}
		}
	};
	const row = (y: number) => Math.min(Math.max(Math.floor((y - lo) * scale), 0), H);

	const seen = visible(b, moments, n),
		size = b.size;
	const least = merge ? Infinity : smallest(b, seen);
	const tops = new Int32Array(n).fill(row(0)); // the row up to which a column is filled
	for (let v = 0; v < seen.n; v++) {
		const i = seen.row[v],
			first = seen.first[v],
			last = seen.last[v],
			s = size[i];
		if (s < least) {
			const g = p.group(i);
			const sum = (sums[g] ??= new Float64Array(n + 1));
			sum[first] += s;
			sum[last + 1] -= s;
			merged[g]++;
			continue;
		}
		let y0 = 0,
			y1 = 0,
			start = first,
			color = -1;
		for (let c = first; c <= last; c++) {
			const up = (own[c] += s),
				y = (up - lo) * scale;
			const a = tops[c],
				z = y <= 0 ? 0 : y >= H ? H : y | 0;
			tops[c] = z;
			if (a === y0 && z === y1) continue;
			if (y1 > y0) {
				if (color < 0) color = p.color(i);
				fill(start, c, y0, y1, color, i);
			}
			start = c;
			y0 = a;
			y1 = z;
		}
		if (y1 > y0) fill(start, last + 1, y0, y1, color < 0 ? p.color(i) : color, i);
	}
	addRest(b, cols, p, sums, n);

	const top = own.slice();
	for (let g = 0; g < sums.length; g++) {
		const sum = sums[g];
		if (!sum) continue;
		const color = p.groups[g].color,
			other = merge ? color : tint(color, back, 0.35);
		let now = 0;
		for (let c = 0; c < n; c++) {
			now += sum[c];
			const y0 = row(top[c]),
				y1 = row((top[c] += Math.max(now, 0)));
			for (let y = y0; y < y1; y++) {
				const at = (H - 1 - y) * W + c;
				pixels[at] = (c + y) % 6 < 2 ? other : color;
				ids[at] = -2 - g;
			}
		}
	}
	f.merged = merged;
}

function addRest(b: Bands, cols: Columns, p: Paint, sums: (Float64Array | null)[], n: number): void {
	if (!b.rest || !cols.span) return;
	b.rest.groups.forEach((bytes, category) => {
		const sum = (sums[p.restGroup(category)] ??= new Float64Array(n + 1));
		let before = 0;
		for (let c = 0; c < n; c++) {
			const v = cols.span![c] < 0 ? 0 : bytes[cols.span![c]];
			sum[c] += v - before;
			before = v;
		}
		sum[n] -= before;
	});
}

/** Mixes a part of another color in. */
export function tint(color: number, other: number, part: number): number {
	let out = 0xff000000;
	for (let shift = 0; shift < 24; shift += 8) {
		const a = (color >>> shift) & 255,
			z = (other >>> shift) & 255;
		out |= Math.round(a + (z - a) * part) << shift;
	}
	return out >>> 0;
}
