// The segments at the cursor: blocks where they lie, and the holes between them.

import { answerBox } from "./answer";
import { css, scheme, Scheme } from "./colors";
import { choice, el, fill, pen } from "./dom";
import * as format from "./format";
import { describe } from "./describe";
import { Segment } from "./model";
import { Panel } from "./panel";
import { Pen, Picture } from "./picture";
import { Cell } from "./save";
import { looked, State, View } from "./view";

const shownRows = 24,
	rowHeight = 26,
	barHeight = 17,
	mostPictured = 600, // rows of a picture that is saved: browsers have no larger ones
	left = 68; // of the sizes beside the bars

/** A block or a hole of a segment. */
interface Part {
	at: number; // bytes from where the segment begins
	size: number;
	row: number; // of lives, -1 for a hole
}

/** A part of one of the segments that are listed. */
interface Spot {
	index: number;
	part: Part;
}

export class Segments implements Panel {
	readonly name = "Segments";
	readonly needs: (keyof State)[] = [
		"cursor",
		"color",
		...looked,
		"pinned",
		"freed",
		"segmentStream",
		"segmentPool",
		"segmentLeast",
	];
	readonly element = el("div", { class: "panel segs" });
	private readonly sums = el("p", { class: "sum" });
	private readonly canvas = el("canvas", { role: "img", tabindex: 0 });
	private readonly tall = el("div", { class: "tall" }, this.canvas);
	private readonly scroller = el("div", { class: "seg-list" }, this.tall);
	private readonly about = el("div", { class: "about", role: "status" });
	/** The segments that are listed, largest first. */
	private all: Segment[] = [];
	private most = 1; // bytes of the longest bar
	private colors!: Scheme;
	private chosen: Spot | null = null; // under the pointer, or where the keys are

	constructor(readonly view: View) {
		this.scroller.style.maxHeight = shownRows * rowHeight + "px";
		this.element.append(this.filters(), this.sums, answerBox(view), this.scroller, this.about);
		this.scroller.addEventListener("scroll", () => this.draw());
		this.canvas.addEventListener("pointermove", e => this.choose(this.at(e)));
		this.canvas.addEventListener("pointerleave", () => this.choose(null));
		this.canvas.addEventListener("click", e => this.pin(this.at(e), e.shiftKey));
		this.canvas.addEventListener("keydown", e => this.key(e));
	}

	/** Which segments are listed. */
	private filters(): HTMLElement {
		const { dev, state } = this.view,
			places = [...new Set(dev.rangePlace)];
		const names = (name: (place: number) => string) => [...new Set(places.map(name))].sort();
		const list = (label: string, key: "segmentStream" | "segmentPool", all: string[]) => {
			const options = [["", "all"], ...all.map(n => [n, n])] as [string, string][];
			return choice(label, options, state[key], v => this.view.set({ [key]: v }));
		};
		const stream = list(
				"Stream",
				"segmentStream",
				names(p => dev.streamName(p)),
			),
			pool = list(
				"Pool",
				"segmentPool",
				names(p => dev.poolName(p)),
			);
		const sizes = [0, 2, 20, 200, 1024].map((mib): [string, string] => [
			String(mib << 20),
			mib ? format.bytes(mib << 20) + " or more" : "all",
		]);
		const least = choice("Size", sizes, String(state.segmentLeast), v =>
			this.view.set({ segmentLeast: Number(v) }),
		);
		this.view.listen(() => {
			stream.querySelector("select")!.value = state.segmentStream;
			pool.querySelector("select")!.value = state.segmentPool;
			least.querySelector("select")!.value = String(state.segmentLeast);
		});
		return el(
			"div",
			{ class: "toolbar", role: "group", "aria-label": "Segments that are listed" },
			stream,
			pool,
			least,
		);
	}

	/** The segments at the cursor that pass the filters, largest first. */
	private listed(): Segment[] {
		const { dev, state } = this.view,
			{ segmentStream: stream, segmentPool: pool, segmentLeast: least } = state;
		return dev
			.segments(state.cursor)
			.filter(
				s =>
					s.size >= least &&
					(!stream || dev.streamName(s.place) === stream) &&
					(!pool || dev.poolName(s.place) === pool),
			)
			.sort((a, b) => b.size - a.size);
	}

	render(): void {
		const { dev, state } = this.view;
		this.all = this.listed();
		this.most = this.all[0]?.size ?? 1;
		this.colors = scheme(this.view);
		this.chosen = null;
		const sum = (of: (s: Segment) => number) => this.all.reduce((a, s) => a + of(s), 0),
			reserved = sum(s => s.size),
			active = sum(s => s.active),
			idle = sum(s => (s.live.length ? 0 : s.size));
		const kinds = dev.free.at(state.cursor),
			say = (name: string, v: number) => el("span", {}, name + " ", el("b", {}, format.bytes(v))),
			some = state.segmentStream || state.segmentPool || state.segmentLeast;
		fill(
			this.sums,
			say("Reserved", reserved),
			say("active", active),
			...(kinds?.event === state.cursor && !some
				? dev.tables.free.map((c, k) => kinds.bytes[k] > 0 && say(c.name, kinds.bytes[k]))
				: [say("free in used segments", reserved - active - idle), say("free segments", idle)]),
			el("span", {}, "segments ", el("b", {}, format.count(this.all.length))),
		);
		this.canvas.setAttribute(
			"aria-label",
			`${format.plural(this.all.length, "segment")}, ${format.bytes(reserved)} reserved, ` +
				`${format.bytes(active)} of it active; arrow keys move, Enter pins, Shift+Enter chooses what to free`,
		);
		this.tall.style.height = Math.max(this.all.length, 1) * rowHeight + "px";
		this.draw();
		this.say();
	}

	/** The bytes of a bar by its width, in CSS pixels. */
	private scale(s: Segment): number {
		return (Math.max(s.size / this.most, 0.01) * this.wide) / s.size;
	}

	private get right(): number {
		return this.tall.clientWidth > 560 ? 96 : 0;
	}

	private get wide(): number {
		return Math.max(this.tall.clientWidth - left - this.right, 10);
	}

	/** Draws the segments that the scroller shows. */
	private draw(): void {
		const W = this.tall.clientWidth,
			H = Math.min(Math.max(this.all.length, 1), shownRows) * rowHeight,
			top = this.scroller.scrollTop,
			first = Math.floor(top / rowHeight);
		const g = pen(this.canvas, W, H);
		for (let i = first; i < this.all.length && i * rowHeight < top + H; i++)
			this.drawSegment(g, i, i * rowHeight - top + 2, W);
	}

	private drawSegment(g: Pen, index: number, y: number, W: number): void {
		const { view, colors } = this,
			s = this.all[index],
			scale = this.scale(s),
			ink = css("ink"),
			free = s.size - s.active;
		g.fillStyle = ink;
		g.textAlign = "right";
		g.fillText(format.bytes(s.size), left - 8, y + 13);
		g.fillStyle = css("free");
		g.fillRect(left, y, s.size * scale, barHeight);
		g.strokeStyle = css("free-line");
		g.setLineDash([3, 2]);
		g.strokeRect(left + 0.5, y + 0.5, Math.max(s.size * scale - 1, 1), barHeight - 1);
		g.setLineDash([]);
		const keeps = s.live.length > 0 && free > s.active && free > s.size / 8;
		let pin = -99;
		for (const p of parts(view, s)) {
			const x = left + p.at * scale,
				w = p.size * scale;
			if (p.row >= 0) {
				g.globalAlpha = view.hit(p.row) ? 1 : 0.15;
				g.fillStyle = p.row === view.state.pinned ? ink : colors.legend[colors.of(p.row)].css;
				g.fillRect(x, y, Math.max(w - (w > 3 ? 0.75 : 0), 0.5), barHeight);
				g.globalAlpha = 1;
				if (view.state.freed.has(p.row)) crossOut(g, x, y, Math.max(w, 2), ink);
				if (keeps && x + w / 2 - pin >= 8) {
					pin = x + w / 2;
					g.fillStyle = ink;
					g.beginPath();
					g.moveTo(pin, y + barHeight);
					g.lineTo(pin - 4, y + barHeight + 5);
					g.lineTo(pin + 4, y + barHeight + 5);
					g.fill();
				}
			}
			if (this.chosen?.index === index && this.chosen.part.at === p.at) {
				g.strokeStyle = ink;
				g.lineWidth = 2;
				g.strokeRect(x, y, Math.max(w, 2), barHeight);
				g.lineWidth = 1;
			}
		}
		if (!this.right) return;
		g.fillStyle = css(free > s.active ? "warn" : "muted");
		g.textAlign = "left";
		g.fillText(
			free === 0 ? "full" : s.live.length ? `${format.bytes(free)} free` : "all free",
			W - this.right + 8,
			y + 13,
		);
	}

	picture(): Picture {
		const rows = Math.min(this.all.length, mostPictured),
			more = this.all.length - rows,
			W = this.tall.clientWidth;
		return {
			width: W,
			height: Math.max(rows + (more ? 1 : 0), 1) * rowHeight,
			draw: g => {
				for (let i = 0; i < rows; i++) this.drawSegment(g, i, i * rowHeight + 2, W);
				if (!more) return;
				g.fillStyle = css("ink");
				g.textAlign = "left";
				g.fillText(`… ${format.plural(more, "more segment")}`, left, rows * rowHeight + 15);
			},
		};
	}

	csv(): Cell[][] {
		const { dev } = this.view;
		return [
			["address", "size (bytes)", "active (bytes)", "blocks", "stream", "pool"],
			...this.listed().map(s => [
				dev.hex(s.addr),
				s.size,
				s.active,
				s.live.length,
				dev.streamName(s.place),
				dev.poolName(s.place),
			]),
		];
	}

	text(): string {
		const { dev } = this.view;
		return (
			this.listed()
				.map(
					s =>
						`${dev.hex(s.addr).slice(2)}\t${format.bytes(s.size)}\t${format.bytes(s.size - s.active)} ` +
						`free\t${s.live.length}\t${dev.placeName(s.place)}`,
				)
				.join("\n") + "\n"
		);
	}

	/** What is under the mouse, or within three pixels of it. */
	private at(e: MouseEvent): Spot | null {
		const index = Math.floor((e.offsetY + this.scroller.scrollTop) / rowHeight),
			s = this.all[index];
		if (!s) return null;
		const scale = this.scale(s);
		let near: Spot | null = null,
			far = 3;
		for (const part of parts(this.view, s)) {
			const x = left + part.at * scale,
				off = Math.max(x - e.offsetX, e.offsetX - x - part.size * scale, 0);
			if (off < far) {
				far = off;
				near = { index, part };
			}
		}
		return near;
	}

	private choose(s: Spot | null): void {
		if (s?.index === this.chosen?.index && s?.part.at === this.chosen?.part.at) return;
		this.chosen = s;
		this.draw();
		this.say();
	}

	/** Pins a block, or chooses it to be freed. */
	private pin(s: Spot | null, free: boolean): void {
		if (!s || s.part.row < 0) return;
		if (free) this.view.free(s.part.row);
		else this.view.set({ pinned: s.part.row });
	}

	/** Up and down go to the segments beside, left and right to the parts beside. */
	private key(e: KeyboardEvent): void {
		const index = this.chosen?.index ?? Math.floor(this.scroller.scrollTop / rowHeight),
			down = { ArrowDown: 1, ArrowUp: -1, PageDown: shownRows, PageUp: -shownRows }[e.key],
			right = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
		if (e.key === "Enter") this.pin(this.chosen, e.shiftKey);
		else if (down) {
			const next = this.chosen ? Math.min(Math.max(index + down, 0), this.all.length - 1) : index;
			if (!this.all[next]) return;
			this.scrollTo(next);
			this.choose({ index: next, part: parts(this.view, this.all[next]).next().value! });
		} else if (right && this.all[index]) {
			const all = [...parts(this.view, this.all[index])],
				now = all.findIndex(p => p.at === this.chosen?.part.at);
			this.choose({ index, part: all[Math.min(Math.max(now + right, 0), all.length - 1)] });
		} else return;
		e.preventDefault();
	}

	private scrollTo(index: number): void {
		const y = index * rowHeight,
			least = y + rowHeight - this.scroller.clientHeight;
		this.scroller.scrollTop = Math.min(Math.max(this.scroller.scrollTop, least), y);
	}

	/** Says what is chosen. */
	private say(): void {
		const d = this.view.dev,
			spot = this.chosen;
		if (!spot) {
			fill(
				this.about,
				el(
					"p",
					{ class: "hint" },
					"▲ marks blocks that keep a mostly free segment from being released. Shift-click blocks to see what " +
						"freeing them would do." +
						(this.all.length > shownRows
							? ` Scroll for all ${format.plural(this.all.length, "segment")}.`
							: ""),
				),
			);
			return;
		}
		const s = this.all[spot.index],
			where =
				`in a segment of ${format.bytes(s.size)} at ${d.hex(s.addr)}, ${d.placeName(s.place)}, ` +
				`${format.bytes(s.size - s.active)} free`;
		fill(
			this.about,
			spot.part.row >= 0
				? describe(this.view, spot.part.row, 6)
				: el("p", {}, el("b", {}, format.bytes(spot.part.size)), " free"),
			el("p", { class: "hint" }, where),
		);
	}
}

/** The blocks and holes of a segment, in order of address. */
function* parts(view: View, s: Segment): Generator<Part> {
	const { addr, lives } = view.dev;
	let at = 0;
	for (const row of s.live) {
		const from = addr[row] - s.addr;
		if (from > at) yield { at, size: from - at, row: -1 };
		yield { at: from, size: lives.size[row], row };
		at = from + lives.size[row];
	}
	if (at < s.size) yield { at, size: s.size - at, row: -1 };
}

/** Draws a block that a user would free: as free memory with a line across it. */
function crossOut(g: Pen, x: number, y: number, w: number, ink: string): void {
	g.fillStyle = css("free");
	g.fillRect(x, y, w, barHeight);
	g.strokeStyle = ink;
	g.strokeRect(x + 0.5, y + 0.5, Math.max(w - 1, 1), barHeight - 1);
	if (w < 6) return;
	g.beginPath();
	g.moveTo(x, y + barHeight);
	g.lineTo(x + w, y);
	g.stroke();
}
