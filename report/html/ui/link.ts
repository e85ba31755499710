// What a user looks at as a text: the part of an address behind "#", such as
// "gpu0&at=7975&zoom=100-9000&tab=segments". Only what differs from how a page opens is in it.

import { named } from "./labels";
import { pickOf } from "./picks";
import { axes, colors, modes, State, View } from "./view";

/** A part of the state in a link. Reading gives nothing where a page does not know what is meant. */
export interface Field<V = View, S = State> {
	name: string;
	write: (v: V) => string; // "" where it is as the page opens
	read: (text: string, v: V) => Partial<S>;
}

function word<K extends "mode" | "color" | "axis">(name: string, key: K, known: readonly State[K][]): Field {
	return {
		name,
		write: v => (v.state[key] === v.home[key] ? "" : v.state[key]),
		read: text => (known.includes(text as State[K]) ? { [key]: text } : {}),
	};
}

const mostText = 500,
	mostFreed = 60;

function text(name: string, key: "search" | "tab" | "only" | "around" | "focus", most = mostText): Field {
	return {
		name,
		write: v => (v.state[key].length > most ? "" : v.state[key]),
		read: text => ({ [key]: text.slice(0, most) }),
	};
}

/** One of the names that the places of a device have. */
function place(name: string, key: "segmentStream" | "segmentPool", of: (v: View, place: number) => string): Field {
	return {
		name,
		write: v => v.state[key],
		read: (text, v) => (v.dev.places.some((_, p) => of(v, p) === text) ? { [key]: text } : {}),
	};
}

function flag(name: string, key: "regex" | "internals" | "inverted"): Field {
	return { name, write: v => (v.state[key] ? "1" : ""), read: text => ({ [key]: text === "1" }) };
}

/** Two numbers as a link has them. */
export const spanText = (a: number, b: number) => `${short(a)}-${short(b)}`;

/** Two numbers, the first below the second; null for other texts. */
export function span(text: string): [number, number] | null {
	const m = /^(\d{1,16}(?:\.\d{1,3})?)-(\d{1,16}(?:\.\d{1,3})?)$/.exec(text);
	return m && Number(m[1]) < Number(m[2]) ? [Number(m[1]), Number(m[2])] : null;
}

const short = (n: number) => String(Math.round(n * 1000) / 1000);

/** An event of the trace, -1 for the state before it; null for other texts. */
function event(text: string, v: View): number | null {
	return /^(-1|\d{1,10})$/.test(text) ? Math.min(Number(text), v.dev.events - 1) : null;
}

/** What links to a device say. */
export const fields: Field[] = [
	word("show", "mode", modes),
	word("color", "color", colors),
	word("by", "axis", axes),
	{
		name: "at",
		write: v => (v.state.cursor === v.home.cursor ? "" : String(v.state.cursor)),
		read: (text, v) => ({ cursor: event(text, v) ?? v.home.cursor }),
	},
	{
		name: "zoom",
		write: v => (v.whole ? "" : spanText(v.state.x0, v.state.x1)),
		read: text => {
			const s = span(text);
			return s ? { x0: s[0], x1: s[1] } : {};
		},
	},
	{
		name: "bytes",
		write: v => (v.state.hi ? spanText(v.state.lo, v.state.hi) : ""),
		read: text => {
			const s = span(text);
			return s ? { lo: s[0], hi: s[1] } : {};
		},
	},
	{
		name: "marks",
		write: v => [v.state.markA, v.state.markB].filter(e => e > -2).join(","),
		read: (text, v) => {
			const [a, b] = text.split(",").map(t => event(t, v) ?? -2);
			return { markA: a, markB: a > -2 ? (b ?? -2) : -2 };
		},
	},
	{
		name: "pin",
		write: v => (v.state.pinned < 0 ? v.state.sought : v.dev.blockName(v.state.pinned)),
		read: (text, v) => {
			const row = named(v.dev, text);
			return row < 0 && v.dev.served ? { sought: text.slice(0, mostText) } : { pinned: row };
		},
	},
	{
		name: "pick",
		write: v => v.state.pick?.key ?? "",
		read: (text, v) => ({ pick: pickOf(v.dev, text) }),
	},
	{
		name: "free",
		write: v =>
			v.state.freed.size > mostFreed ? "" : [...v.state.freed].map(row => v.dev.blockName(row)).join(","),
		read: (text, v) => {
			const rows = text.split(",", mostFreed).map(name => named(v.dev, name));
			return { freed: new Set(rows.filter(row => row >= 0)) };
		},
	},
	text("only", "only"),
	{
		name: "limit",
		write: v => (v.state.limit ? String(v.state.limit) : ""),
		read: text => ({ limit: /^\d{1,16}$/.test(text) ? Number(text) : 0 }),
	},
	text("find", "search"),
	flag("regex", "regex"),
	flag("internals", "internals"),
	text("tab", "tab"),
	flag("inverted", "inverted"),
	text("around", "around"),
	text("focus", "focus", 4 * mostText),
	place("stream", "segmentStream", (v, p) => v.dev.streamName(p)),
	place("pool", "segmentPool", (v, p) => v.dev.poolName(p)),
	{
		name: "least",
		write: v => (v.state.segmentLeast ? String(v.state.segmentLeast) : ""),
		read: text => ({ segmentLeast: /^\d{1,16}$/.test(text) ? Number(text) : 0 }),
	},
];

/** The state of a view as the text of a link. */
export function write<V, S>(v: V, fields: Field<V, S>[]): string {
	return fields
		.map(f => [f.name, f.write(v)])
		.filter(([, text]) => text)
		.map(([name, text]) => `&${name}=${encodeURIComponent(text).replaceAll("%2C", ",")}`)
		.join("");
}

/** What a link says; what it does not say, or says in a way that this page does not know, is as the page opens. */
export function read<V, S>(link: string, v: V, fields: Field<V, S>[]): Partial<S> {
	const said = new URLSearchParams(link),
		out: Partial<S> = {};
	for (const f of fields) {
		const text = said.get(f.name);
		if (text !== null) Object.assign(out, f.read(text, v));
	}
	return out;
}

/** A view whose state is in links. */
export interface Linked {
	link(): string;
	follow(link: string): void;
	listen(f: () => void): void;
}

export function linked<S, V extends { restore(part: Partial<S>): void; listen(f: () => void): void }>(
	v: V,
	fields: Field<V, S>[],
): Linked {
	return {
		link: () => write(v, fields),
		follow: link => v.restore(read(link, v, fields)),
		listen: f => v.listen(f),
	};
}

/** The device that the page's address names, -1 for none, and what the address says about it. The page of a diff has
 * one, "diff". */
export function address(): { ordinal: number; link: string } {
	const m = /^#(?:gpu(\d{1,9})|diff)(?:&(.*)|-.*)?$/s.exec(location.hash);
	return { ordinal: m ? Number(m[1] ?? 0) : -1, link: m?.[2] ?? "" };
}
