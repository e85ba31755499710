// What freeing blocks does, and whether a request that failed would be served then. It mirrors
// snapana/analyze/fragmentation (fit.go), so that the answers are the same whoever gives them.

import { Failure } from "./data";
import { Device, Segment } from "./model";

/** How a request is served: fragmentation.Way. */
export type Way = "hole" | "new" | "release" | "refused" | "unclear";

export interface Fit {
	way: Way;
	addr: number; // of the free range that serves it
	size: number;
	largest: number; // largest free range of its pool
	needs: number; // bytes that the device is asked for where no range has room
	returned: number; // bytes that the allocator gives back first
	has: number; // bytes that the device has then, at least
}

export interface Relief {
	blocks: number;
	bytes: number;
	waiting: number; // of the blocks, those that the program had freed by then
	returned: number; // bytes that empty_cache() gives back more than before
	segments: Segment[]; // of returned, those that go back as a whole
	largest: number; // largest free range then
	around: number; // largest free range that one of the blocks is in then
}

const roundLarge = 2 << 20;

interface Hole {
	segment: Segment;
	from: number;
	to: number;
	page: [number, number] | null; // whole pages that go back to the device
}

/** Segments with what lives in them, but for some blocks. */
function without(dev: Device, event: number, gone: (row: number) => boolean): Segment[] {
	return dev.segments(event).map(s => ({ ...s, live: s.live.filter(row => !gone(row)) }));
}

/** The free ranges of segments, by address: fragmentation.FindHoles. */
function holesOf(dev: Device, segments: Segment[]): Hole[] {
	const out: Hole[] = [];
	for (const segment of segments) {
		const { page } = dev.places[segment.place],
			end = segment.addr + segment.size;
		let at = segment.addr;
		const add = (to: number) => {
			if (to <= at) return;
			const pages = (n: number) => segment.addr + n * page,
				from = page ? pages(Math.ceil((at - segment.addr) / page)) : 0,
				until = page ? pages(Math.floor((to - segment.addr) / page)) : 0;
			out.push({ segment, from: at, to, page: until > from ? [from, until] : null });
		};
		for (const row of segment.live) {
			add(dev.addr[row]);
			at = dev.addr[row] + dev.lives.size[row];
		}
		add(end);
	}
	return out;
}

/** What empty_cache() gives back: Classes.Releasable. */
function releasable(dev: Device, segments: Segment[]): number {
	const whole = (s: Segment) => !s.live.length && !dev.places[s.place].pool;
	return holesOf(dev, segments).reduce(
		(sum, h) => sum + (whole(h.segment) ? h.to - h.from : h.page ? h.page[1] - h.page[0] : 0),
		0,
	);
}

/** The stream in question after an event: that of the request that failed, else the one with the most reserved memory. */
function streamAt(dev: Device, event: number): number {
	const oom = dev.marks.find(m => m.kind === "oom" && m.event === event);
	if (oom) return oom.stream;
	const sums = new Map<number, number>();
	for (const s of dev.segments(event)) {
		const p = dev.places[s.place];
		if (!p.pool) sums.set(p.stream, (sums.get(p.stream) ?? 0) + s.size);
	}
	let best = 0;
	for (const [id, n] of sums) {
		const m = sums.get(best) ?? 0;
		if (n > m || (n === m && id < best)) best = id;
	}
	return best;
}

/** What the program had freed by then, and another stream may still use. */
export const waits = (dev: Device, row: number, event: number) => dev.asked[row] <= event;

/** Frees blocks that are live after an event: fragmentation.Relieve. */
export function relieve(dev: Device, event: number, rows: Iterable<number>): Relief {
	const freed = new Set<number>(),
		r: Relief = { blocks: 0, bytes: 0, waiting: 0, returned: 0, segments: [], largest: 0, around: 0 };
	for (const row of new Set(rows)) {
		if (dev.lives.born[row] > event || dev.lives.freed[row] <= event) continue;
		if (waits(dev, row, event)) {
			r.waiting++;
			continue;
		}
		freed.add(row);
		r.blocks++;
		r.bytes += dev.lives.size[row];
	}
	const before = dev.segments(event),
		after = without(dev, event, row => freed.has(row)),
		stream = streamAt(dev, event),
		starts = Float64Array.from(freed, row => dev.addr[row]).sort();
	let next = 0;
	for (const h of holesOf(dev, after)) {
		const p = dev.places[h.segment.place];
		if (!p.pool && p.stream === stream) r.largest = Math.max(r.largest, h.to - h.from);
		while (next < starts.length && starts[next] < h.from) next++;
		if (next < starts.length && starts[next] < h.to) r.around = Math.max(r.around, h.to - h.from);
	}
	r.returned = releasable(dev, after) - releasable(dev, before);
	before.forEach((s, i) => {
		const p = dev.places[s.place];
		if (!p.expandable && !p.pool && s.live.length && !after[i].live.length) r.segments.push(s);
	});
	return r;
}

const up = (n: number, to: number) => Math.ceil(n / to) * to;

/** Serves a request when some blocks are freed after an event; free is what the device has, -1 unknown: fragmentation.Serve. */
export function serve(dev: Device, event: number, gone: ReadonlySet<number>, req: Failure, free: number): Fit {
	const { rules } = dev,
		{ rounded } = req,
		segments = without(dev, event, row => gone.has(row) && !waits(dev, row, event)),
		f: Fit = { way: "unclear", addr: 0, size: 0, largest: 0, needs: 0, returned: 0, has: 0 };
	for (const h of holesOf(dev, segments)) {
		if (!serves(dev, h.segment.place, req)) continue;
		const size = h.to - h.from;
		f.largest = Math.max(f.largest, size);
		if (size >= rounded && (!f.size || size < f.size)) [f.addr, f.size] = [h.from, size];
	}
	const limit = rules.max_split < 0 ? Infinity : rules.max_split,
		takes = rounded < limit ? f.size < limit : f.size - rounded < rules.max_round;
	if (f.size && takes) return { ...f, way: "hole" };
	f.addr = f.size = 0;
	f.has = Math.floor(Math.max(free, 0) / roundLarge) * roundLarge;
	f.needs = needs(dev, segments, req, false);
	if (f.has >= f.needs) return { ...f, way: "new" };
	const synced = segments.map(s => ({ ...s, live: s.live.filter(row => !waits(dev, row, event)) }));
	f.returned = releasable(dev, synced);
	f.has += f.returned;
	f.needs = needs(dev, synced, req, true);
	return { ...f, way: f.has >= f.needs ? "release" : free >= 0 ? "refused" : "unclear" };
}

/** Whether the pool of a place serves a request. */
function serves(dev: Device, place: number, req: Failure): boolean {
	const p = dev.places[place];
	return (
		!!p.kind &&
		!p.pool &&
		p.stream === req.stream &&
		(p.kind === "unknown" || p.kind === (req.small ? "small" : "large")) &&
		(dev.rules.expandable || !p.expandable)
	);
}

/** The bytes that the device is asked for when no free range serves a request: pool.needs. */
function needs(dev: Device, segments: Segment[], req: Failure, released: boolean): number {
	const { rounded, granule } = req;
	if (!dev.rules.expandable) return up(req.segment, roundLarge);
	let at = Infinity;
	for (let r = 0; r < dev.ranges.n; r++) {
		const place = dev.rangePlace[r];
		if (dev.places[place].expandable && serves(dev, place, req)) at = Math.min(at, dev.rangeAddr[r]);
	}
	if (at === Infinity) return up(rounded, granule);
	let from = at, // of a run without blocks
		need = 0,
		some = false; // of the run is not mapped
	const unmapped = (a: number, b: number) => {
		if (a >= b) return;
		some = true;
		const end = Math.min(b, from + rounded);
		if (end > a) need += up(end - a, granule);
	};
	const own = segments.filter(s => dev.places[s.place].expandable && serves(dev, s.place, req)),
		holes = new Map<Segment, Hole[]>(own.map(s => [s, []]));
	for (const h of holesOf(dev, own)) holes.get(h.segment)!.push(h);
	for (const s of own) {
		unmapped(at, s.addr);
		const list = holes.get(s)!.values();
		const free = (to: number) => {
			const h = to > at && list.next().value;
			if (!h || !released) return;
			if (!s.live.length) unmapped(h.from, h.to);
			else if (h.page) unmapped(...h.page);
		};
		at = s.addr;
		for (const row of s.live) {
			free(dev.addr[row]);
			if (some && dev.addr[row] - from >= rounded) return need;
			from = at = dev.addr[row] + dev.lives.size[row];
			need = 0;
			some = false;
		}
		free(s.addr + s.size);
		at = s.addr + s.size;
	}
	unmapped(at, at + up(rounded, granule));
	return need;
}
