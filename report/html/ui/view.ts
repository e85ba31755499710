// What a user looks at: the state that all parts of a device's view share.

import { groups } from "./colors";
import { Packed, WindowHeader } from "./data";
import { named, owners, readAddress } from "./labels";
import { Device, Group } from "./model";
import { Pick } from "./picks";
import { Store, within } from "./store";

export const modes = ["bands", "stacked", "reserved", "free"] as const;
export const colors = ["category", "site", "stream", "pool", "age", "holder"] as const;
export const axes = ["event", "time"] as const;
export type Mode = (typeof modes)[number];
export type ColorBy = (typeof colors)[number];
export type Axis = (typeof axes)[number];

export interface State {
	mode: Mode;
	color: ColorBy;
	axis: Axis;
	/** The part of the axis that is shown, in events or microseconds. */
	x0: number;
	x1: number;
	/** Bytes at the lower and upper edge; hi 0 fits the highest of the whole trace. */
	lo: number;
	hi: number;
	cursor: number; // event
	pinned: number; // row of lives, -1 none
	sought: string; // the name of a block that a link has pinned and that a server has not given yet
	markA: number; // events, -2 none
	markB: number;
	search: string;
	regex: boolean;
	internals: boolean;
	/** Allocations to look at, beside those of the search. */
	pick: Pick | null;
	/** Names of the colors to look at, in lines; "" for all. */
	only: string;
	/** A drag selects a range, as it does with Shift. */
	select: boolean;
	/** Name of the panel that is shown below, "" for the first. */
	tab: string;
	/** The flame graph: innermost calls first; the function that it is drawn around, and the path to the call that has
	 * the focus, in lines. */
	inverted: boolean;
	around: string;
	focus: string;
	/** Which segments the map lists: of a stream and a pool, "" for all, and from how many bytes on. */
	segmentStream: string;
	segmentPool: string;
	segmentLeast: number;
	/** Bytes that PyTorch can reserve, for the question what would fail then; 0 for those of the run. */
	limit: number;
	/** Rows of lives that a user would free; never changed in place. */
	freed: ReadonlySet<number>;
	/** How often a server gave more of the trace. */
	detail: number;
}

/** What decides which allocations are looked at. */
export const looked: (keyof State)[] = ["search", "regex", "internals", "pick", "only"];

/** Which stacks a search matches; null without a search. */
export type Match = Uint8Array | null;

export class View extends Store<State> {
	match: Match = null;
	/** Which frames the search matches by themselves. */
	frames: Match = null;
	/** Which labels and which annotated rows the search matches beside stacks. */
	private labels: Match = null;
	private noted = new Set<number>();
	/** Whether a row has one of the colors to look at; null where all are. */
	private among: ((row: number) => boolean) | null = null;
	/** The blocks that lived at the address that is searched for; null when none is. */
	address: { addr: number; hex: string; rows: number[]; set: Set<number> } | null = null;
	searchError = "";

	constructor(
		readonly dev: Device,
		color: ColorBy,
	) {
		super({
			mode: "bands",
			color,
			axis: "event",
			x0: 0,
			x1: Math.max(dev.events, 1),
			lo: 0,
			hi: 0,
			cursor: start(dev),
			pinned: -1,
			sought: "",
			markA: -2,
			markB: -2,
			search: "",
			regex: false,
			internals: false,
			pick: null,
			only: "",
			select: false,
			tab: "",
			inverted: false,
			around: "",
			focus: "",
			segmentStream: "",
			segmentPool: "",
			segmentLeast: 0,
			limit: 0,
			freed: new Set(),
			detail: 0,
		});
	}

	/** Changes the state; listeners hear of it before the next frame. */
	override set(part: Partial<State>): void {
		if (part.pinned !== undefined && part.pinned >= 0) part = { ...part, sought: "" };
		if (part.color && part.color !== this.state.color) part = { only: "", ...part };
		super.set(part);
	}

	protected override follow(changed: Set<keyof State>): void {
		if (changed.has("search") || changed.has("regex") || changed.has("internals")) this.find();
		if (changed.has("only") || changed.has("color")) this.choose();
	}

	/** Shows something else, in its full height. */
	show(mode: Mode): void {
		this.set({ mode, pinned: -1, lo: 0, hi: 0 });
	}

	/** Goes to a state that is as the page opens but for a part, as a link has it. */
	restore(part: Partial<State>): void {
		const { x0, x1, axis, color, ...rest } = { ...this.home, x0: 0, x1: Infinity, ...part };
		this.set({
			...rest,
			axis: this.dev.hasTimes ? axis : "event",
			color: color === "holder" && !this.dev.held.bytes.length ? this.home.color : color,
			detail: this.state.detail,
		});
		this.zoom(x0, Math.min(x1, this.full()));
	}

	/** Whether all of the axis is shown. */
	get whole(): boolean {
		return this.state.x0 <= 0 && this.state.x1 >= this.full();
	}

	/** Chooses a row to be freed, or no longer. */
	free(row: number): void {
		const freed = new Set(this.state.freed);
		if (!freed.delete(row)) freed.add(row);
		this.set({ freed });
	}

	/** The length of the whole axis. */
	full(): number {
		const d = this.dev;
		return this.state.axis === "event" ? Math.max(d.events, 1) : d.clock.micros[d.clock.micros.length - 1] + 1;
	}

	/** Where an event lies on the axis. */
	at(event: number): number {
		if (this.state.axis === "event") return event + 0.5;
		return event < 0 ? 0 : this.dev.timeOf(event);
	}

	/** The event at a place of the axis. */
	eventAt(x: number): number {
		const e = this.state.axis === "event" ? Math.floor(x) : this.dev.eventAt(x);
		return Math.min(Math.max(e, 0), this.dev.events - 1);
	}

	/** The events where the columns of a picture begin. Event e has the axis from e to e+1. */
	edges(width: number, x0 = this.state.x0, x1 = this.state.x1): Int32Array {
		const out = new Int32Array(width + 1),
			last = this.dev.events;
		const byEvent = this.state.axis === "event";
		for (let i = 0; i <= width; i++) {
			const x = x0 + (i * (x1 - x0)) / width;
			const e = byEvent ? Math.ceil(x) : this.dev.eventAt(x);
			out[i] = Math.min(Math.max(e, i ? out[i - 1] : 0), last);
		}
		return out;
	}

	/** Shows a part of the axis, within its bounds. */
	zoom(x0: number, x1: number): void {
		this.set(within(x0, x1, this.full(), this.state.axis === "event" ? 8 : 20));
	}

	/** Moves the cursor, and the picture when the cursor would leave it. */
	go(event: number): void {
		event = Math.min(Math.max(event, -1), this.dev.events - 1);
		this.set({ cursor: event });
		const x = this.at(event),
			{ x0, x1 } = this.state;
		if (x < x0 || x > x1) this.zoom(x - (x1 - x0) / 2, x + (x1 - x0) / 2);
	}

	setAxis(axis: Axis): void {
		if (axis === this.state.axis) return;
		const a = this.eventAt(this.state.x0),
			b = this.eventAt(this.state.x1);
		const { whole } = this;
		this.set({ axis });
		if (whole) this.set({ x0: 0, x1: this.full() });
		else this.zoom(this.at(a), this.at(b));
	}

	/** Whether only some allocations are looked at. */
	get choosy(): boolean {
		return this.match !== null || this.address !== null || this.among !== null || this.state.pick !== null;
	}

	/** Whether a row is among those that are looked at; not searched: whether or not the search matches it. */
	hit(row: number, searched = true): boolean {
		const {
			match,
			address,
			dev,
			state: { pick },
		} = this;
		return (
			(!match ||
				!searched ||
				match[dev.stackOf(row)] > 0 ||
				this.labels![dev.kinds.label[dev.kind[row]]] > 0 ||
				this.noted.has(row)) &&
			(!address || address.set.has(row)) &&
			(!pick || pick.has(row)) &&
			(!this.among || this.among(row))
		);
	}

	/** The rows that are live at an event and are looked at. */
	live(event = this.state.cursor, searched = true): number[] {
		const rows = this.dev.lives.liveAt(event);
		return this.choosy ? rows.filter(r => this.hit(r, searched)) : rows;
	}

	/** Takes in what a server gives, which numbers the rows anew. */
	adopt(p: Packed<WindowHeader>): void {
		const { dev, state } = this,
			name = (row: number): [number, number] => [dev.lives.born[row], dev.addr[row]];
		const pinned = state.pinned < 0 ? null : name(state.pinned),
			freed = [...state.freed].map(name);
		dev.adopt(p);
		this.find();
		this.choose();
		const row = ([born, addr]: [number, number]) => {
			let r = dev.lives.bornFrom(born);
			while (r < dev.lives.n && dev.lives.born[r] === born && dev.addr[r] !== addr) r++;
			return r < dev.lives.n && dev.lives.born[r] === born ? r : -1;
		};
		this.set({
			detail: state.detail + 1,
			pinned: pinned ? row(pinned) : state.sought ? named(dev, state.sought) : -1,
			freed: freed.length ? new Set(freed.map(row).filter(r => r >= 0)) : state.freed,
		});
	}

	/** Sums the matching rows that are live at an event. */
	matched(event = this.state.cursor): Group {
		const all = this.dev.group(this.live(event), () => "");
		return all[0] ?? { name: "", bytes: 0, requested: 0, count: 0, stack: 0 };
	}

	private choose(): void {
		const { only, color } = this.state,
			names = new Set(only.split("\n"));
		this.among = null;
		if (!only) return;
		const { of, legend } = groups(this.dev, color),
			on = legend.map(g => names.has(g.name));
		if (on.includes(true)) this.among = row => on[of(row)];
		else this.state.only = "";
	}

	private find(): void {
		const { search, regex, internals } = this.state,
			t = this.dev.tables;
		this.searchError = "";
		this.match = this.frames = null;
		this.labels = null;
		this.noted.clear();
		this.address = null;
		if (!search) return;
		const address = regex ? null : readAddress(search);
		if (address) {
			const found = owners(this.dev, address);
			this.address = { ...found, set: new Set(found.rows) };
			return;
		}
		let test: (s: string) => boolean;
		if (regex) {
			try {
				const re = new RegExp(search);
				test = s => re.test(s);
			} catch (e) {
				this.searchError = e instanceof Error ? e.message : "unknown error";
				return;
			}
		} else {
			const word = search.toLowerCase();
			test = s => s.toLowerCase().includes(word);
		}
		const frames = (this.frames = Uint8Array.from(t.frameText, (s, f) =>
			(internals || t.frameOrigin[f] > 0) && test(t.strings[s]) ? 1 : 0,
		));
		const nodes = new Uint8Array(t.nodeParent.length);
		for (let n = 1; n < nodes.length; n++) nodes[n] = nodes[t.nodeParent[n]] | frames[t.nodeFrame[n]];
		this.match = Uint8Array.from(t.stackNode, n => nodes[n]);
		this.labels = Uint8Array.from(t.labels, l => (l.notes.some(n => test(n.text)) ? 1 : 0));
		this.noted = this.dev.annotated(test);
	}
}

/** The cursor begins at what went wrong, or else at the peak. */
function start(dev: Device): number {
	const ooms = dev.marks.filter(m => m.kind === "oom");
	if (ooms.length) return ooms[ooms.length - 1].event;
	return dev.marks.find(m => m.kind === "peak")?.event ?? dev.events - 1;
}
