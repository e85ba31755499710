// What a user looks at as a text: the part of an address behind "#", such as
// "gpu0&at=7975&zoom=100-9000&tab=segments". Only what differs from how a page opens is in it.

import { named } from "./labels";
import { pickOf } from "./picks";
import { axes, colors, modes, State, View } from "./view";

/** A part of the state in a link. Reading gives nothing where a page does not know what is meant. */
interface Field {
	name: string;
	write: (v: View) => string; // "" where it is as the page opens
	read: (text: string, v: View) => Partial<State>;
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

/** Two numbers, the first below the second; null for other texts. */
function span(text: string): [number, number] | null {
	const m = /^(\d{1,16}(?:\.\d{1,3})?)-(\d{1,16}(?:\.\d{1,3})?)$/.exec(text);
	return m && Number(m[1]) < Number(m[2]) ? [Number(m[1]), Number(m[2])] : null;
}

const short = (n: number) => String(Math.round(n * 1000) / 1000);

/** An event of the trace, -1 for the state before it; null for other texts. */
function event(text: string, v: View): number | null {
	return /^(-1|\d{1,10})$/.test(text) ? Math.min(Number(text), v.dev.events - 1) : null;
}

const fields: Field[] = [
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
		write: v => (v.whole ? "" : `${short(v.state.x0)}-${short(v.state.x1)}`),
		read: text => {
			const s = span(text);
			return s ? { x0: s[0], x1: s[1] } : {};
		},
	},
	{
		name: "bytes",
		write: v => (v.state.hi ? `${short(v.state.lo)}-${short(v.state.hi)}` : ""),
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
export function write(v: View): string {
	return fields
		.map(f => [f.name, f.write(v)])
		.filter(([, text]) => text)
		.map(([name, text]) => `&${name}=${encodeURIComponent(text).replaceAll("%2C", ",")}`)
		.join("");
}

/** What a link says; what it does not say, or says in a way that this page does not know, is as the page opens. */
export function read(link: string, v: View): Partial<State> {
	const said = new URLSearchParams(link),
		out: Partial<State> = {};
	for (const f of fields) {
		const text = said.get(f.name);
		if (text !== null) Object.assign(out, f.read(text, v));
	}
	return out;
}

/** The device that the page's address names, -1 for none, and what the address says about it. */
export function address(): { ordinal: number; link: string } {
	const m = /^#gpu(\d{1,9})(?:&(.*)|-.*)?$/s.exec(location.hash);
	return { ordinal: m ? Number(m[1]) : -1, link: m?.[2] ?? "" };
}
