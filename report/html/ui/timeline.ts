// The timeline: every allocation as a band on those that are older.

import { placeTip, tell, upright, xAxis, xName, xTicks, yAxis, yTicks } from "./axis";
import { Bands, Columns, columns, never } from "./bands";
import { abgr, css, rangeScheme, scheme, Scheme } from "./colors";
import { FreeClass } from "./data";
import { el, fill, pen, pixelRatio, redrawn, swatch } from "./dom";
import * as format from "./format";
import { drawFree, freeScheme } from "./free";
import { draw, Frame, nothing } from "./raster";
import { figures } from "./figures";
import { keys } from "./keys";
import { drawFrame, legend, Pen, Picture } from "./picture";
import { drag } from "./pointer";
import { describe, describeMerged } from "./describe";
import { Cell } from "./save";
import { zoomKey } from "./sheet";
import { State, View } from "./view";

const height = 360; // CSS pixels of the picture
const lane = 18; // of the strip of steps above it

export class Timeline {
	readonly name = "Timeline";
	readonly element: HTMLElement;
	frame = new Frame(1, 1);
	columns: Columns | null = null;
	scheme!: Scheme;
	/** Milliseconds that the last picture took. */
	took = 0;

	private readonly box = el("div", {
		class: "tl-box",
		tabindex: 0,
		role: "slider",
		"aria-label": "Moment in the trace",
		"aria-orientation": "horizontal",
	});
	private readonly canvas = el("canvas", { class: "tl-bands", "aria-hidden": "true" });
	private readonly over = el("canvas", { class: "tl-over", "aria-hidden": "true" });
	// What is pinned says the same.
	private readonly wheelHint = el("div", { class: "wheel-hint", "aria-hidden": "true", hidden: true });
	private readonly tip = el("div", { class: "tip", "aria-hidden": "true", hidden: true });
	private readonly yAxis = el("div", { class: "tl-y", "aria-hidden": "true" });
	private readonly xAxis = el("div", { class: "tl-x", "aria-hidden": "true" });
	private readonly legend = el("ul", { class: "tl-legend", "aria-label": "Colors" });
	private readonly note = el("p", { class: "hint tl-note" });
	private painted: unknown[] = [];
	private said = ""; // what the legend stands for
	private sampled = false; // some columns show measured moments beside their own
	private hinting = 0;
	private hover: { x: number; y: number } | null = null;

	constructor(readonly view: View) {
		this.box.append(this.canvas, this.over, this.wheelHint, this.tip);
		this.element = el(
			"div",
			{ class: "tl" },
			this.legend,
			el("div", { class: "tl-grid" }, this.yAxis, this.box, this.xAxis),
			this.note,
		);
		this.box.addEventListener("keydown", e => keys(e, view));
		drag(this.box, view, {
			width: () => this.width,
			hover: p => {
				this.hover = p;
				this.overlay();
			},
			click: (p, shift) => this.click(p.x, p.y, shift),
			zoomY: (y, factor) => this.zoomY(y, factor),
			panY: dy => this.panY(dy),
			range: (x0, x1) => view.set({ markA: view.eventAt(x0), markB: view.eventAt(x1) }),
			passed: () => this.hint(),
		});
		view.listen(changed => this.update(changed));
		redrawn(this.box, () => this.render());
	}

	get width(): number {
		return Math.max(this.box.clientWidth, 1);
	}

	/** Says how the wheel zooms, to who turned it above the picture. */
	private hint(): void {
		this.wheelHint.textContent = `${zoomKey} and wheel: zoom. Or click first.`;
		this.wheelHint.hidden = false;
		clearTimeout(this.hinting);
		this.hinting = setTimeout(() => (this.wheelHint.hidden = true), 1500);
	}

	focus(): void {
		this.box.focus();
	}

	/** What is stacked: allocations or reserved ranges. */
	get bands(): Bands {
		return this.view.state.mode === "reserved" ? this.view.dev.ranges : this.view.dev.lives;
	}

	private update(changed: Set<keyof State>): void {
		const picture: (keyof State)[] = [
			"mode",
			"color",
			"axis",
			"x0",
			"x1",
			"lo",
			"hi",
			"search",
			"regex",
			"internals",
			"pick",
			"only",
			"pinned",
			"detail",
		];
		if (picture.some(k => changed.has(k))) this.render();
		else this.overlay();
	}

	/** The bytes at the lower and the upper edge of the picture. */
	range(): { lo: number; hi: number } {
		const { lo, hi } = this.view.state,
			d = this.view.dev;
		if (!hi && this.view.state.mode === "free") return { lo: 0, hi: Math.max(d.free.peak, 1) * 1.05 };
		let most = Math.max(d.lives.peak, d.ranges.peak, 1);
		if (d.lives.rest) for (const v of d.lives.rest.total) most = Math.max(most, v);
		return hi ? { lo, hi } : { lo: 0, hi: most * 1.05 };
	}

	render(): void {
		const started = performance.now(),
			ratio = pixelRatio(),
			{ dev } = this.view;
		const W = Math.round(this.width * ratio),
			H = Math.round(height * ratio);
		if (dev.events === 0 || this.box.clientWidth === 0) return;
		if (this.frame.width !== W || this.frame.height !== H) {
			this.frame = new Frame(W, H);
			this.canvas.width = W;
			this.canvas.height = H;
		}
		this.paint();
		const { lo, hi } = this.range();
		this.columns = this.fillFrame(this.frame);
		const image = new ImageData(new Uint8ClampedArray(this.frame.pixels.buffer), W, H);
		this.canvas.getContext("2d")!.putImageData(image, 0, 0);
		yAxis(this.yAxis, lo, hi, height, lane);
		xAxis(this.xAxis, xTicks(this.view, this.width), xName(this.view));
		this.took = performance.now() - started;
		this.overlay();
		this.say();
	}

	/** Draws the part of the trace that is shown, and gives its columns. */
	private fillFrame(f: Frame): Columns {
		const { dev, state } = this.view,
			{ lo, hi } = this.range(),
			edges = this.view.edges(f.width),
			back = abgr(css("card"));
		if (state.mode === "free") {
			const free = dev.free.columns(edges);
			this.sampled = free.sampled;
			drawFree(f, free, lo, hi, this.scheme, back);
			return free;
		}
		const cols = columns(this.bands, edges, dev.events);
		draw(f, this.bands, cols, lo, hi, state.mode === "stacked", this.scheme, back);
		return cols;
	}

	/** Decides on colors anew where something changed that they depend on. */
	private paint(): void {
		const { state } = this.view,
			card = css("card");
		const painted = [
			state.mode,
			state.color,
			state.pinned,
			state.search,
			state.regex,
			state.internals,
			state.pick,
			state.only,
			state.detail,
			card,
		];
		if (painted.every((v, i) => v === this.painted[i])) return;
		this.painted = painted;
		this.scheme =
			state.mode === "free"
				? freeScheme(this.view.dev.tables.free)
				: state.mode === "reserved"
					? rangeScheme(this.view)
					: scheme(this.view);
	}

	/** Draws what moves with the cursor. */
	overlay(): void {
		const { view } = this,
			{ dev, state } = view,
			W = this.width;
		if (!this.columns) return;
		const g = pen(this.over, W, height + lane);
		if (state.mode === "free") fill(this.legend, ...this.describeFree(state.cursor));
		this.drawOver(g, W, this.columns);
		this.showTip(g, W);
		tell(
			this.box,
			view,
			state.mode === "free" ? this.legend : `${format.bytes(dev.lives.totalAt(state.cursor))} active`,
		);
	}

	/** Draws what lies on the bands: steps, reserved memory, marks and the cursor. */
	private drawOver(g: Pen, W: number, cols: Columns): void {
		const { view } = this,
			{ dev, state } = view;
		const px = (event: number) => ((view.at(event) - state.x0) / (state.x1 - state.x0)) * W;
		const muted = css("muted"),
			ink = css("ink");
		this.drawSteps(g, px, muted);
		if (state.mode === "bands" || state.mode === "stacked") this.drawReserved(g, W, cols);
		// From where to where, so that one that would lie on another goes below it.
		const labels: [number, number][] = [];
		const line = (event: number, color: string, dash: number[], label: string) => {
			const x = px(event),
				w = g.measureText(label).width + 8,
				from = x > W - 60 ? x - w : x;
			const row = labels.filter(([a, z]) => a < from + w && from < z).length;
			if (label && x >= -1 && x <= W + 1) labels.push([from, from + w]);
			upright(g, x, W, lane, height, color, dash, row < 3 ? label : "", row);
		};
		for (const m of dev.marks) {
			if (m.kind === "annotation") {
				g.fillStyle = muted;
				g.fillRect(px(m.event) - 1, lane - 6, 2, 9);
			} else if (m.kind === "retry") line(m.event, css("warn"), [2, 3], "");
			else
				line(
					m.event,
					css(m.kind === "oom" ? "bad" : "active"),
					m.kind === "oom" ? [] : [2, 3],
					m.kind === "oom" ? "✕ OOM" : "▼ peak",
				);
		}
		if (state.markB > -2) {
			const a = px(state.markA),
				z = px(state.markB);
			g.globalAlpha = 0.16;
			g.fillStyle = css("sel");
			g.fillRect(Math.min(a, z), lane, Math.abs(z - a), height);
			g.globalAlpha = 1;
		}
		if (state.markA > -2) line(state.markA, css("sel"), [6, 3], "A");
		if (state.markB > -2) line(state.markB, css("sel"), [6, 3], "B");
		line(state.cursor, ink, [], "");
		const x = px(state.cursor);
		if (x >= 0 && x <= W) {
			g.fillStyle = ink;
			g.beginPath();
			g.moveTo(x - 6, lane - 6);
			g.lineTo(x + 6, lane - 6);
			g.lineTo(x, lane + 3);
			g.fill();
		}
	}

	/** The timeline as a picture of its own, with legend and axes. */
	picture(): Picture {
		const { view } = this,
			W = this.width,
			left = 70,
			{ lo, hi } = this.range();
		const items = [...this.legend.children].map(li => ({
			color:
				li.querySelector<HTMLElement>(".swatch")?.style.background ??
				(li.querySelector(".key") ? css("reserved") : ""),
			text: li.textContent,
		}));
		const key = legend(items, left + W);
		return {
			width: left + W + 1,
			height: key.height + lane + height + 40,
			draw: (g, ratio) => {
				const f = new Frame(Math.round(W * ratio), Math.round(height * ratio)),
					cols = this.fillFrame(f);
				key.draw(g, ratio);
				g.save();
				g.translate(left, key.height + lane);
				drawFrame(g, f, ratio);
				g.fillStyle = css("muted");
				g.textAlign = "right";
				for (const t of yTicks(lo, hi, height)) g.fillText(t.text, -8, t.at + 4);
				for (const t of xTicks(view, W)) {
					g.textAlign = t.at < 0.02 ? "left" : t.at > 0.97 ? "right" : "center";
					g.fillText(t.text, t.at * W, height + 16);
				}
				g.textAlign = "right";
				g.fillText(xName(view), W, height + 32);
				g.restore();
				g.save();
				g.translate(left, key.height);
				g.beginPath();
				g.rect(0, 0, W, height + lane);
				g.clip();
				this.drawOver(g, W, cols);
				g.restore();
			},
		};
	}

	csv(): Cell[][] {
		return figures(this.view, this.columns!, this.scheme);
	}

	private drawSteps(g: Pen, px: (e: number) => number, muted: string): void {
		const s = this.view.dev.steps,
			grid = css("grid"),
			sunk = css("sunk");
		for (let i = 0; i < s.first.length; i++) {
			const a = Math.max(px(s.first[i]), 0),
				z = Math.min(px(s.last[i]), this.width);
			if (z <= 0 || a >= this.width || z - a < 0.5) continue;
			g.fillStyle = i % 2 ? sunk : grid;
			g.fillRect(a, 0, z - a, lane - 6);
			if (z - a > 46) {
				g.fillStyle = muted;
				g.textAlign = "left";
				g.font = "10px system-ui, sans-serif";
				g.fillText(`step ${i}`, a + 3, lane - 9);
				g.font = "12px system-ui, sans-serif";
			}
		}
	}

	private drawReserved(g: Pen, W: number, cols: Columns): void {
		const { lo, hi } = this.range(),
			ranges = this.view.dev.ranges;
		if (!ranges.n) return;
		g.strokeStyle = css("reserved");
		g.lineWidth = 1.5;
		g.beginPath();
		for (let c = 0; c < cols.n; c++) {
			const y = lane + (1 - (ranges.totalAt(cols.event[c]) - lo) / (hi - lo)) * height;
			const x = (c / cols.n) * W;
			if (c === 0) g.moveTo(x, y);
			g.lineTo(x, y);
			g.lineTo(((c + 1) / cols.n) * W, y);
		}
		g.stroke();
	}

	/** What the picture shows at a place, in CSS pixels from its upper left corner. */
	hit(x: number, y: number): { column: number; event: number; id: number } | null {
		if (!this.columns || y < lane) return null;
		const r = this.frame.width / this.width;
		const c = Math.floor(x * r),
			p = Math.floor((y - lane) * r);
		if (c < 0 || c >= this.frame.width || p < 0 || p >= this.frame.height) return null;
		return { column: c, event: this.columns.event[c], id: this.frame.ids[p * this.frame.width + c] };
	}

	private showTip(g: Pen, W: number): void {
		const h = this.hover && this.hit(this.hover.x, this.hover.y);
		this.tip.hidden = !h;
		if (!h || !this.hover) return;
		upright(g, this.hover.x, W, lane, height, css("muted"), []);
		if (h.id >= 0) this.outline(g, h.column, h.id);
		const { dev, state } = this.view;
		const head = el(
			"p",
			{ class: "tip-head" },
			`event ${format.count(h.event)} ${dev.when(h.event)}: `,
			el("b", {}, format.bytes(this.columns!.total[h.column])),
			state.mode === "reserved" ? " reserved" : state.mode === "free" ? " free" : " active",
		);
		const part =
			state.mode === "free"
				? el("ul", { class: "tl-legend" }, ...this.describeFree(h.event).slice(1))
				: h.id === nothing
					? null
					: h.id < -1
						? describeMerged(this, -2 - h.id)
						: state.mode === "reserved"
							? this.describeRange(h.id)
							: describe(this.view, h.id, 4);
		fill(this.tip, head, part);
		this.tip.dataset.row = String(h.id);
		placeTip(this.tip, this.hover, W, height - 60);
	}

	/** Draws the edge of a band that a column has. */
	private outline(g: Pen, column: number, id: number): void {
		const { width: W, ids } = this.frame,
			ratio = W / this.width;
		/** The rows of a column that the band has, found from one that it had in the column beside. */
		const rows = (c: number, near: number): [number, number] | null => {
			if (c < 0 || c >= W) return null;
			let at = near * W + c;
			if (ids[at] !== id) for (at = c; at < ids.length && ids[at] !== id;) at += W;
			if (at >= ids.length) return null;
			let end = at;
			while (at >= W && ids[at - W] === id) at -= W;
			while (end < ids.length && ids[end] === id) end += W;
			return [Math.floor(at / W), Math.floor(end / W)];
		};
		let first = column,
			near = 0;
		for (let e = rows(first, near); e; e = rows(--first, near)) near = e[0];
		const lower: [number, number][] = [];
		g.strokeStyle = css("ink");
		g.lineWidth = 2;
		g.beginPath();
		for (let c = first + 1, e = rows(c, near); e; e = rows(++c, e[0])) {
			for (const x of [c, c + 1]) {
				g.lineTo(x / ratio, lane + e[0] / ratio);
				lower.push([x / ratio, lane + e[1] / ratio]);
			}
		}
		for (const [x, y] of lower.reverse()) g.lineTo(x, y);
		g.closePath();
		g.stroke();
	}

	/** The classes of free memory after an event. */
	private describeFree(event: number): HTMLElement[] {
		const at = this.view.dev.free.at(event);
		if (!at) return [];
		const li = (text: string, v: number, part?: FreeClass) =>
			el(
				"li",
				{ title: part?.means },
				part && swatch(css(part.color)),
				el("span", {}, text + " ", el("b", {}, format.bytes(v))),
			);
		return [
			li(
				at.event === event
					? "reserved, not allocated"
					: `at event ${format.count(at.event)}, the nearest measured one`,
				at.bytes.reduce((a, v) => a + v, 0),
			),
			...this.view.dev.tables.free.flatMap((c, k) => (at.bytes[k] ? li(c.name, at.bytes[k], c) : [])),
		];
	}

	private describeRange(row: number): HTMLElement {
		const d = this.view.dev,
			end = d.ranges.freed[row];
		return el(
			"p",
			{},
			el("b", {}, format.bytes(d.ranges.size[row])),
			` reserved, ${d.placeName(d.rangePlace[row])}, since `,
			d.ranges.born[row] < 0 ? "before the trace" : `event ${format.count(d.ranges.born[row])}`,
			end === never ? "" : ` to event ${format.count(end)}`,
		);
	}

	/** A line of the legend; where allocations are drawn, a button that leaves only those of its color. */
	private color(name: string, color: string): HTMLElement {
		const { view } = this,
			{ mode, only } = view.state,
			on = only.split("\n");
		if (mode === "reserved") return el("li", {}, swatch(color), name);
		const choose = (more: boolean) => {
			const rest = on.filter(n => n && n !== name);
			if (!more) view.set({ only: only === name ? "" : name });
			else view.set({ only: [...rest, ...(on.includes(name) ? [] : [name])].join("\n") });
		};
		return el(
			"li",
			{},
			el(
				"button",
				{
					type: "button",
					class: "link color",
					"aria-pressed": String(on.includes(name)),
					title: "Only this; again: all; with Shift: this, too",
					click: (e: MouseEvent) => choose(e.shiftKey),
				},
				swatch(color),
				name,
			),
		);
	}

	private click(x: number, y: number, shift: boolean): void {
		const h = this.hit(x, Math.max(y, lane));
		if (!h) return;
		if (shift) {
			this.mark(h.event);
			return;
		}
		this.view.set({ cursor: h.event, pinned: this.view.state.mode === "reserved" || h.id < 0 ? -1 : h.id });
	}

	/** Sets the two marks of the ruler in turn. */
	mark(event: number): void {
		const { markA, markB } = this.view.state;
		if (markA > -2 && markB === -2) this.view.set({ markB: event });
		else this.view.set({ markA: event, markB: -2 });
	}

	private zoomY(y: number, factor: number): void {
		const { lo, hi } = this.range(),
			full = this.fullHeight();
		const at = hi - ((y - lane) / height) * (hi - lo),
			width = Math.max((hi - lo) * factor, 4096);
		if (width >= full) {
			this.view.set({ lo: 0, hi: 0 });
			return;
		}
		const low = Math.max(at - ((at - lo) / (hi - lo)) * width, 0);
		this.view.set({ lo: low, hi: low + width });
	}

	private panY(dy: number): void {
		if (!this.view.state.hi) return;
		const { lo, hi } = this.range();
		const low = Math.min(Math.max(lo + (dy / height) * (hi - lo), 0), Math.max(this.fullHeight() - (hi - lo), 0));
		this.view.set({ lo: low, hi: low + hi - lo });
	}

	private fullHeight(): number {
		const { lo, hi } = this.view.state;
		this.view.state.lo = this.view.state.hi = 0;
		const full = this.range().hi;
		this.view.state.lo = lo;
		this.view.state.hi = hi;
		return full;
	}

	/** Says what the colors mean, and what is not to be seen. */
	private say(): void {
		if (this.view.state.mode === "free") {
			const n = this.view.dev.free.samples.event.length;
			this.said = "";
			this.note.textContent =
				"Reserved but not allocated, by what keeps it from use." +
				(this.sampled
					? ` Not all allocations are in this page, so it was measured at ${format.plural(n, "moment")}: a ` +
						`column shows the nearest.`
					: "");
			return;
		}
		const { dev, state } = this.view,
			used = new Set<number>(),
			f = this.frame;
		for (let i = 0; i < f.ids.length; i += 7) {
			const id = f.ids[i];
			if (id >= 0) used.add(this.scheme.of(id));
			else if (id < -1) used.add((-2 - id) % this.scheme.legend.length);
		}
		const key = [...used].sort().join() + state.color + state.mode + state.only + css("card");
		if (key !== this.said)
			fill(
				this.legend,
				...this.scheme.legend.map((g, i) => used.has(i) && this.color(g.name, g.css)),
				state.mode !== "reserved" && el("li", {}, el("i", { class: "key line-reserved" }), "reserved"),
			);
		this.said = key;
		const merged = f.merged.reduce((a, b) => a + b, 0);
		const words = [];
		if (state.mode === "bands" && merged)
			words.push(
				`On top, striped: ${format.plural(merged, "allocation")} too small to draw one by one, summed by ` +
					`color. Zoom in to see them.`,
			);
		const cols = this.columns!,
			left = dev.leftOut.lives > 0 && state.mode !== "reserved";
		if (left && dev.served && !dev.lives.knows(cols.event[0], cols.event[cols.n - 1]))
			words.push(
				`${format.count(dev.leftOut.lives)} of ${format.plural(dev.leftOut.of, "allocation")}, the smallest ` +
					`and shortest, are only in the sums. Zoom in to load them.`,
			);
		if (left && !dev.served)
			words.push(
				`${format.count(dev.leftOut.lives)} of ${format.plural(dev.leftOut.of, "allocation")}, the smallest ` +
					`and shortest, did not fit into this page and are only in the sums. Below ` +
					`${format.plural(Math.ceil(dev.events / dev.lives.rest!.event.length), "event")} per column, ` +
					`their share is that of the nearest known moment.`,
			);
		if (dev.leftOut.ranges)
			words.push(`${format.plural(dev.leftOut.ranges, "reserved range")} did not fit into this page.`);
		this.note.textContent = words.join(" ");
	}
}
