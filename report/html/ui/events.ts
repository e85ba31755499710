// Every event of the trace, as far as the page has it.

import { Bands, never } from "./bands";
import { el, fill } from "./dom";
import * as format from "./format";
import { Panel } from "./panel";
import { Cell } from "./save";
import { looked, State, View } from "./view";

const rowHeight = 24,
	shownRows = 18;
const tallest = 8_000_000; // pixels; browsers cut off what is much taller

const enum Type {
	Alloc,
	Asked,
	Freed,
	Reserve,
	Release,
	Mark,
}

const words = ["alloc", "free requested", "free completed", "segment alloc", "segment free", ""];

export class Events implements Panel {
	readonly name = "Events";
	readonly needs: (keyof State)[] = ["cursor", ...looked];
	readonly element = el("div", { class: "panel events" });
	private readonly scroller = el("div", { class: "event-list", tabindex: 0, role: "region", "aria-label": "events" });
	private readonly tall = el("div", { class: "tall" });
	private readonly list = el("div", { class: "rows" });
	private readonly about = el("p", { class: "hint" });
	private built: Bands | null = null;
	private events = new Int32Array(0); // rising, those of an event by type
	private types = new Uint8Array(0);
	private rows = new Int32Array(0); // of lives, ranges or marks
	private filtered: Int32Array | null = null;

	constructor(readonly view: View) {
		this.tall.append(this.list);
		this.scroller.append(this.tall);
		this.scroller.style.height = rowHeight * shownRows + "px";
		this.element.append(this.about, this.scroller);
		this.scroller.addEventListener("scroll", () => this.draw());
		this.scroller.addEventListener("keydown", e => {
			const dir = { ArrowDown: 1, ArrowUp: -1, PageDown: shownRows, PageUp: -shownRows }[e.key];
			if (!dir || !this.length) return;
			e.preventDefault();
			const i = Math.min(Math.max(this.place() + dir, 0), this.length - 1);
			this.view.go(this.eventOf(i));
		});
	}

	render(): void {
		this.build();
		this.filter();
		this.tall.style.height = Math.max(Math.min(this.length * rowHeight, tallest), 1) + "px";
		const d = this.view.dev;
		const of = this.filtered ? " of matching allocations" : "";
		const left = d.leftOut.lives
			? `; those of ${format.count(d.leftOut.lives)} allocations are not in this page`
			: "";
		this.about.textContent = `${format.plural(this.length, "event")}${of}${left}. Click to move the cursor.`;
		if (this.length) this.scroller.scrollTop = this.scrollOf(Math.max(this.place() - shownRows / 2, 0));
		this.draw();
	}

	private get length(): number {
		return (this.filtered ?? this.events).length;
	}

	private index(i: number): number {
		return this.filtered ? this.filtered[i] : i;
	}

	private eventOf(i: number): number {
		return this.events[this.index(i)];
	}

	/** The row of the first event at the cursor or after it. */
	private place(): number {
		let lo = 0,
			hi = this.length;
		while (lo < hi) {
			const mid = (lo + hi) >> 1;
			if (this.eventOf(mid) < this.view.state.cursor) lo = mid + 1;
			else hi = mid;
		}
		return Math.min(lo, this.length - 1);
	}

	/** Lists all events: sorted by counting those of each event, which keeps the order of types. */
	private build(): void {
		const d = this.view.dev,
			l = d.lives,
			r = d.ranges;
		if (this.built === l) return;
		this.built = l;
		// By type, the event of each row; those of no event of the trace are never, or negative.
		const lists = [
			l.born,
			d.asked.map((event, row) => (event === l.freed[row] ? never : event)),
			l.freed,
			r.born,
			r.freed,
			Int32Array.from(d.marks, m => (m.kind === "peak" ? never : m.event)),
		];
		const next = new Int32Array(d.events + 1); // where the next entry of an event goes
		for (const list of lists)
			for (let row = 0; row < list.length; row++)
				if (list[row] >= 0 && list[row] < d.events) next[list[row] + 1]++;
		for (let e = 0; e < d.events; e++) next[e + 1] += next[e];
		const n = next[d.events];
		this.events = new Int32Array(n);
		this.types = new Uint8Array(n);
		this.rows = new Int32Array(n);
		for (let type = Type.Alloc; type <= Type.Mark; type++)
			for (let row = 0; row < lists[type].length; row++) {
				const event = lists[type][row];
				if (event < 0 || event >= d.events) continue;
				const at = next[event]++;
				this.events[at] = event;
				this.types[at] = type;
				this.rows[at] = row;
			}
	}

	private filter(): void {
		this.filtered = null;
		if (!this.view.choosy) return;
		const hit = Uint8Array.from({ length: this.view.dev.lives.n }, (_, row) => (this.view.hit(row) ? 1 : 0));
		this.filtered = Int32Array.from(this.events.keys()).filter(
			i => this.types[i] <= Type.Freed && hit[this.rows[i]] > 0,
		);
	}

	csv(): Cell[][] {
		const d = this.view.dev,
			out: Cell[][] = [["event", "time (microseconds)", "what", "size (bytes)", "address", "site or pool"]];
		for (let i = 0; i < this.length; i++) {
			const { event, type, row, word, site } = this.entry(i);
			const [size, addr]: Cell[] =
				type <= Type.Freed
					? [d.lives.size[row], d.hex(d.addr[row])]
					: type < Type.Mark
						? [d.ranges.size[row], d.hex(d.rangeAddr[row])]
						: ["", ""];
			out.push([event, d.hasTimes ? Math.round(d.timeOf(event)) : "", word, size, addr, site]);
		}
		return out;
	}

	private scrollOf(i: number): number {
		const full = this.length * rowHeight;
		return full <= tallest ? i * rowHeight : (i / this.length) * tallest;
	}

	private draw(): void {
		const n = this.length,
			full = n * rowHeight,
			top = this.scroller.scrollTop;
		const first = Math.min(
			Math.max(Math.floor(full <= tallest ? top / rowHeight : (top / tallest) * n), 0),
			Math.max(n - shownRows, 0),
		);
		this.list.style.transform = `translateY(${full <= tallest ? first * rowHeight : top}px)`;
		const out: HTMLElement[] = [];
		for (let i = first; i < Math.min(first + shownRows + 1, n); i++) out.push(this.line(i));
		fill(this.list, ...out);
	}

	/** What the list says in a line. */
	private entry(i: number): { event: number; type: Type; row: number; word: string; site: string } {
		const d = this.view.dev,
			at = this.index(i),
			row = this.rows[at],
			type = this.types[at] as Type;
		const site =
			type <= Type.Freed
				? d.tables.site(d.stackOf(row))
				: type < Type.Mark
					? d.placeName(d.rangePlace[row])
					: d.marks[row].text;
		return { event: this.events[at], type, row, word: type < Type.Mark ? words[type] : d.marks[row].kind, site };
	}

	private line(i: number): HTMLElement {
		const d = this.view.dev,
			{ event, type, row, word, site } = this.entry(i);
		const size = type === Type.Mark ? "" : format.bytes((type <= Type.Freed ? d.lives : d.ranges).size[row]);
		return el(
			"button",
			{
				type: "button",
				tabindex: -1,
				class: "event t" + type + (event === this.view.state.cursor ? " now" : ""),
				click: () => this.view.set({ cursor: event, pinned: type <= Type.Freed ? row : -1 }),
			},
			el("span", { class: "n" }, format.count(event)),
			el("span", { class: "n when" }, d.when(event)),
			el("span", { class: "what" }, word),
			el("span", { class: "n" }, size),
			el("span", { class: "site" }, site),
		);
	}
}
