// What torch and the program noted beside allocations, and addresses as people type them.

import { Label } from "./data";
import { Device } from "./model";

const words: Record<string, string> = {
	compile_context: "compiled region",
	user_metadata: "metadata",
	internal_metadata: "allocator's metadata",
	category: "profiler's category",
	annotation: "annotation",
	fx_node: "FX node",
	fx_trace: "traced from",
	forward: "forward call",
};

export const noteWord = (kind: string) => words[kind] ?? kind;

/** The text of a kind of note, "" for none. */
export function noteOf(l: Label, kind: string): string {
	return l.notes.find(n => n.kind === kind)?.text ?? "";
}

type Values = Record<string, unknown>;

/** The keys of metadata that is a JSON object, those of objects within behind a dot. */
function values(text: string): Values {
	const out: Values = {};
	if (!text.startsWith("{")) return out;
	try {
		const todo: [string, Values][] = [["", JSON.parse(text) as Values]];
		for (let next = todo.pop(); next; next = todo.pop())
			for (const [k, v] of Object.entries(next[1])) {
				out[next[0] + k] = v;
				if (v && typeof v === "object" && !Array.isArray(v)) todo.push([next[0] + k + ".", v as Values]);
			}
	} catch {
		return {};
	}
	return out;
}

/** A way of grouping by labels: its name, and the group of each row of Tables.labels. */
export interface LabelKind {
	name: string;
	groups: string[];
}

const mostKinds = 40;

/** The ways in which the labels of a page can group, as snapana's --by has them. */
export function labelKinds(labels: Label[]): LabelKind[] {
	const out: LabelKind[] = [];
	const add = (name: string, none: string, of: (l: Label) => string | undefined) => {
		const groups = labels.map(of);
		if (groups.some(g => g !== undefined)) out.push({ name, groups: groups.map(g => g ?? none) });
	};
	add("compile", "(in no compiled region)", l => noteOf(l, "compile_context") || undefined);
	add("metadata", "(without metadata)", l => noteOf(l, "user_metadata") || undefined);
	const parsed = labels.map(l => values(noteOf(l, "user_metadata")));
	const keys = [...new Set(parsed.flatMap(v => Object.keys(v)))].sort().slice(0, mostKinds);
	for (const key of keys) {
		const groups = parsed.map(v =>
			key in v
				? typeof v[key] === "string" && v[key] !== ""
					? v[key]
					: JSON.stringify(v[key])
				: `(without metadata.${key})`,
		);
		out.push({ name: "metadata." + key, groups });
	}
	return out;
}

/** An address that a search can mean. */
export interface Address {
	values: bigint[]; // the likeliest first
	generation: number; // of a name of memory_viz, -1 for none
}

/** Reads an address: 0x7f064c000000, the same without 0x, b7f064c000000_2, or decimal. Null for other texts. */
export function readAddress(text: string): Address | null {
	const word = text.trim().toLowerCase();
	let m;
	if ((m = /^0x([0-9a-f]{1,16})$/.exec(word))) return { values: [BigInt("0x" + m[1])], generation: -1 };
	if ((m = /^([bs])(?:0x)?([0-9a-f]{4,16})_(\d{1,9})$/.exec(word)))
		return { values: [BigInt("0x" + m[2])], generation: m[1] === "b" ? Number(m[3]) : -1 };
	if (!/^[bs]?[0-9a-f]{9,20}$/.test(word)) return null;
	const out: bigint[] = [];
	if (/^\d+$/.test(word)) out.push(BigInt(word));
	if (/^[0-9a-f]{9,16}$/.test(word)) out.push(BigInt("0x" + word));
	if (/^[bs]/.test(word)) out.push(BigInt("0x" + word.slice(1)));
	return { values: out, generation: -1 };
}

/** The rows that lived at an address, in order of birth, which address that is, and how the device counts it. */
export function owners(d: Device, a: Address): { addr: number; hex: string; rows: number[] } {
	for (const value of a.values) {
		const addr = d.count(value);
		const rows: number[] = [];
		for (let row = 0; row < d.lives.n; row++)
			if (
				d.holds(row, addr) &&
				(a.generation < 0 || (d.addr[row] === addr && d.generation[row] === a.generation))
			)
				rows.push(row);
		if (rows.length) return { addr, hex: d.hex(addr), rows };
	}
	return { addr: d.count(a.values[0]), hex: "0x" + a.values[0].toString(16), rows: [] };
}

/** The row that has a name of memory_viz or lived first at an address, -1 for none. */
export function named(d: Device, text: string): number {
	const address = readAddress(text);
	return (address && owners(d, address).rows[0]) ?? -1;
}
