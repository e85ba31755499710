// Reads what the page carries. The contract is snapana/report/internal/page, data.go.

export interface Column {
	at: number;
	len: number;
	mode: "u" | "z" | "d";
}

interface Totals {
	reserved: number;
	active: number;
	allocated: number;
	requested: number;
}
export interface Mark {
	kind: string;
	event: number;
	text: string;
	stream: number;
	addr: number; // as the device's stretches count
}
/** What torch and the program noted beside an allocation. */
export interface Label {
	notes: { kind: string; text: string }[];
}
export interface Replay {
	name: string;
	peak: number;
	reserved: Column;
	failures: number;
	about: boolean;
	failed: number;
	asked: number;
	ladder: {
		rungs: Rung[];
		safe_event: Column;
		safe_bytes: Column;
		safe: boolean;
		safe_to: number;
		sure_event: Column;
		sure_bytes: Column;
	};
}

/** The outcome of a setting with one limit; a server answers with one, too. */
export interface Rung {
	limit: number;
	start: boolean;
	failed: number;
	asked: number;
	peak: number;
	about: boolean;
}

/** The ladder of a replay, read: see Ladder of the contract. */
export interface Ladder {
	rungs: Rung[];
	safe: boolean;
	safeTo: number;
	safeEvent: Float64Array;
	safeBytes: Float64Array;
	sureEvent: Float64Array;
	sureBytes: Float64Array;
}

export function readLadder(p: Packed, { ladder: l }: Replay): Ladder {
	return {
		rungs: l.rungs,
		safe: l.safe,
		safeTo: l.safe_to,
		safeEvent: p.read(l.safe_event),
		safeBytes: p.read(l.safe_bytes),
		sureEvent: p.read(l.sure_event),
		sureBytes: p.read(l.sure_bytes),
	};
}
export interface Place {
	kind: string;
	stream: number;
	pool: string;
	expandable: boolean;
	page: number;
}

/** Who keeps memory at the dump; row 0 is no one that was seen. */
export interface Holder {
	name: string;
	standing: string;
	chain: string[];
	bytes: number;
	blocks: number;
	frees: number;
	shared: number;
	with: string[];
	grows: string;
	fix: string[];
}

/** A class of memory that is reserved and not allocated; they are drawn in their order, from below. */
export interface FreeClass {
	name: string;
	means: string;
	color: string;
}

/** What grows: allocated by these stacks in the trace, and not freed at the horizon. */
export interface Growth {
	stacks: number[];
	horizon: number;
}

/** A request that failed, with what it takes to serve it; free is what the device had, -1 unknown. */
export interface Failure {
	event: number;
	rounded: number;
	stream: number;
	small: boolean;
	free: number;
	segment: number;
	granule: number;
	way: string;
}

export interface DeviceHeader {
	ordinal: number;
	events: number;
	initial: Totals;
	final: Totals;
	marks: Mark[];
	steps: { unit: string; first: Column; last: Column; names: string[] };
	clock: { event: Column; micros: Column; exact: boolean };
	places: Place[];
	stretches: { at: number; addr: string }[];
	kinds: Record<"stack" | "rounded" | "requested" | "category" | "trust" | "place" | "label", Column>;
	lives: Record<"kind" | "born" | "life" | "gap" | "addr" | "older" | "holder", Column>;
	held: { bytes: Column; blocks: Column };
	growth: Growth[];
	ranges: Record<"addr" | "size" | "born" | "life" | "place", Column>;
	rest: { edge: Column; event: Column; bytes: Column[] };
	left_out: { lives: number; of: number; ranges: number };
	free: { event: Column; bytes: Column[] };
	whatif: { last: Column; limit: number; best: number; replays: Replay[] };
	failures: Failure[];
	rules: { expandable: boolean; max_split: number; max_round: number };
}

/** A file of the program, in pieces around the lines of frames; link opens it in an editor, with {line}. */
export interface SourceFile {
	name: string;
	link: string;
	pieces: { first: number; lines: string[] }[];
}

export interface Header {
	version: number;
	strings: string[];
	frames: { text: Column; origin: Column };
	nodes: { parent: Column; frame: Column };
	stacks: { node: Column; site: Column };
	labels: Label[];
	categories: string[];
	holders: Holder[];
	colors: string[];
	free: FreeClass[];
	source: { dir: string; files: SourceFile[]; file: Column; line: Column; odd: Column };
	devices: DeviceHeader[];
}

/** What a server gives of a part of the trace: Window of the contract. */
export interface WindowHeader {
	version: number;
	first: number;
	last: number;
	all: boolean;
	at: number;
	all_at: boolean;
	kinds: DeviceHeader["kinds"];
	lives: DeviceHeader["lives"];
}

/** The data behind a header. */
export class Packed<H = Header> {
	constructor(
		readonly header: H,
		private readonly body: Uint8Array,
	) {}

	/** Reads a column of numbers, exact up to 2^53. */
	read(c: Column): Float64Array {
		const out = new Float64Array(c.len),
			b = this.body;
		let p = c.at,
			prev = 0;
		for (let i = 0; i < c.len; i++) {
			let x = b[p++];
			let v = x & 127;
			for (let m = 128; x >= 128; m *= 128) {
				x = b[p++];
				v += (x & 127) * m;
			}
			if (c.mode !== "u") {
				v = v % 2 ? -(v + 1) / 2 : v / 2;
				if (c.mode === "d") v = prev += v;
			}
			out[i] = v;
		}
		return out;
	}

	ints(c: Column): Int32Array {
		return Int32Array.from(this.read(c));
	}
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
	const native = (Uint8Array as unknown as { fromBase64?: (s: string) => Uint8Array<ArrayBuffer> }).fromBase64;
	if (native) return native(text);
	const s = atob(text);
	const out = new Uint8Array(s.length);
	for (let i = 0; i < s.length; i++) out[i] = s.charCodeAt(i);
	return out;
}

/** Inflates and splits the text of the page's data. */
export async function load<H extends { version: number } = Header>(text: string): Promise<Packed<H>> {
	const stream = new Blob([fromBase64(text.trim())]).stream().pipeThrough(new DecompressionStream("gzip"));
	return unpack<H>(new Uint8Array(await new Response(stream).arrayBuffer()));
}

/** Splits what was inflated. */
export function unpack<H extends { version: number }>(all: Uint8Array<ArrayBuffer>): Packed<H> {
	const n = new DataView(all.buffer).getUint32(0, true);
	const header = JSON.parse(new TextDecoder().decode(all.subarray(4, 4 + n))) as H;
	if (header.version !== 4) throw new Error(`data of version ${header.version}, this page reads 4`);
	return new Packed(header, all.subarray(4 + n));
}
