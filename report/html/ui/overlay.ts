// The traces of both sides in one picture, on one scale: what lies between the two lines is the difference.

import { placeTip, upright, xAxis, yAxis, yTicks } from "./axis";
import { Axis, Lines, Side, View } from "./changes";
import { css } from "./colors";
import { el, fill, pen, redrawn } from "./dom";
import * as format from "./format";
import { Pen, Picture } from "./picture";
import { drag } from "./pointer";
import { Cell } from "./save";
import { zoomKey } from "./sheet";

const top = 18; // above the picture, for marks

const axisNames: Record<Axis, string> = {
	step: "step",
	share: "part of the trace (%)",
	event: "trace event",
};

export class Overlay {
	readonly name: string;
	readonly element: HTMLElement;
	private readonly box: HTMLElement;
	private readonly canvas = el("canvas", { "aria-hidden": "true" });
	private readonly tip = el("div", { class: "tip", "aria-hidden": "true", hidden: true });
	private readonly yAxis = el("div", { class: "tl-y", "aria-hidden": "true" });
	private readonly xAxis = el("div", { class: "tl-x", "aria-hidden": "true" });
	private readonly legend = el("ul", { class: "tl-legend" });
	private at: { x: number; y: number } | null = null;
	private band: [number, number] | null = null; // of the axis, while it is being selected

	/** Marked says that the moments that are compared and the peaks are drawn. */
	constructor(
		readonly view: View,
		readonly what: string,
		private readonly height: number,
		private readonly lines: () => Lines,
		private readonly marked: boolean,
	) {
		this.name = what;
		this.box = el("div", {
			class: "curve-box overlay",
			tabindex: 0,
			role: "slider",
			"aria-label": `Moment in both traces: ${what}`,
			"aria-orientation": "horizontal",
		});
		this.box.style.height = top + height + 1 + "px"; // with its border
		this.box.append(this.canvas, this.tip);
		this.element = el(
			"div",
			{ class: "tl" },
			this.legend,
			el("div", { class: "tl-grid" }, this.yAxis, this.box, this.xAxis),
		);
		this.box.addEventListener("keydown", e => this.key(e));
		drag(this.box, view, {
			width: () => this.width,
			hover: p => {
				this.at = p;
				if (!p) this.band = null;
				view.set({ hover: p ? this.place(p.x) : NaN });
			},
			click: p => view.set({ cursor: this.place(p.x) }),
			zoomY: () => {},
			panY: () => {},
			range: (x0, x1, done) => {
				this.band = done ? null : [x0, x1];
				if (done) view.zoom(x0, x1);
			},
			passed: () => {},
		});
		const moves = [
			"axis",
			"x0",
			"x1",
			"cursor",
			"hover",
			...(marked ? [] : ["row", "focus", "around", "inverted", "by"]),
		];
		view.listen(changed => moves.some(k => changed.has(k as "axis")) && this.render());
		redrawn(this.box, () => this.render());
	}

	private get width(): number {
		return Math.max(this.box.clientWidth, 1);
	}

	private place(x: number): number {
		const { x0, x1 } = this.view.state;
		return Math.min(Math.max(x0 + (x / this.width) * (x1 - x0), 0), this.view.full());
	}

	private key(e: KeyboardEvent): void {
		if (e.ctrlKey || e.metaKey || e.altKey) return;
		const { view } = this,
			{ x0, x1, cursor, axis } = view.state,
			span = x1 - x0,
			go = (x: number) => {
				const to = Math.min(Math.max(x, 0), view.full());
				view.set({ cursor: to });
				if (to < x0 || to > x1) view.zoom(to - span / 2, to + span / 2);
			},
			around = (f: number) => view.zoom(cursor - (cursor - x0) * f, cursor + (x1 - cursor) * f),
			by = (span * (e.shiftKey ? 10 : 1)) / 200;
		const step = (dir: number) => axis === "step" && go((dir > 0 ? Math.floor(cursor) : Math.ceil(cursor)) + dir);
		const peaks = view.d.sides.flatMap(s => (view.sampleOf(s, s.head.peak) >= 0 ? [this.peak(s)] : []));
		const actions: Record<string, () => void> = {
			ArrowLeft: () => go(cursor - by),
			ArrowRight: () => go(cursor + by),
			Home: () => go(0),
			End: () => go(view.full()),
			"+": () => around(0.7),
			"=": () => around(0.7),
			"-": () => around(1 / 0.7),
			n: () => step(1),
			b: () => step(-1),
			p: () => peaks.length && go(peaks.find(x => x > cursor + 1e-9) ?? peaks[0]),
			"0": () => view.set({ x0: 0, x1: view.full() }),
		};
		const act = actions[e.key.length === 1 ? e.key.toLowerCase() : e.key];
		if (!act) return;
		e.preventDefault();
		act();
	}

	private peak(s: Side): number {
		return this.view.middle(s, this.view.sampleOf(s, s.head.peak));
	}

	/** The highest bytes of a line in each column of a picture; NaN where the trace is not. */
	private columns(side: Side, line: Float64Array, W: number): Float64Array {
		const out = new Float64Array(W).fill(NaN),
			edges = this.view.edges(side),
			{ x0, x1 } = this.view.state,
			px = (x: number) => ((x - x0) / (x1 - x0)) * W;
		for (let i = 0; i < side.n; i++) {
			const a = Math.max(Math.floor(px(edges[i])), 0),
				z = Math.min(Math.max(Math.ceil(px(edges[i + 1])), a + 1), W);
			for (let c = a; c < z; c++) if (!(out[c] >= line[i])) out[c] = line[i];
		}
		return out;
	}

	private highest(lines: Lines): number {
		return lines.reduce((most, l) => l.reduce((a, b) => (b > a ? b : a), most), 1) * 1.08;
	}

	render(): void {
		if (!this.box.clientWidth) return;
		const { view, width: W, height } = this,
			lines = this.lines(),
			hi = this.highest(lines),
			g = pen(this.canvas, W, top + height);
		yAxis(this.yAxis, 0, hi, height, top);
		xAxis(this.xAxis, this.ticks(W), axisNames[view.state.axis]);
		this.draw(g, W, lines, hi);
		if (this.band) {
			const { x0, x1 } = view.state,
				[from, to] = this.band.map(x => ((x - x0) / (x1 - x0)) * W);
			g.fillStyle = css("sel");
			g.globalAlpha = 0.15;
			g.fillRect(from, top, to - from, height);
			g.globalAlpha = 1;
		}
		const { cursor, hover } = view.state,
			x = Number.isNaN(hover) ? cursor : hover;
		fill(this.legend, ...this.figures(x, lines));
		this.legend.setAttribute("aria-label", Number.isNaN(hover) ? "At the cursor" : "Under the pointer");
		for (const [name, v] of [
			["min", 0],
			["max", view.full()],
			["now", cursor],
			["text", [...this.figures(cursor, lines)].map(e => e.textContent).join(", ")],
		])
			this.box.setAttribute("aria-value" + name, String(v));
		this.tip.hidden = Number.isNaN(hover) || !this.at;
		if (this.tip.hidden) return;
		fill(this.tip, el("ul", { class: "tl-legend" }, ...this.figures(x, lines)));
		placeTip(this.tip, this.at!, W, Math.max(height - 60, 0));
	}

	/** Where a place of the axis is, and what both sides have there. */
	private figures(x: number, lines: Lines): HTMLElement[] {
		const { view } = this,
			{ sides } = view.d,
			at = view.named(x),
			where =
				view.state.axis === "share"
					? `${at.toFixed(1)}% of the trace`
					: view.state.axis === "event"
						? `event ${format.count(Math.floor(at))}`
						: at < 0
							? "before the first step"
							: at >= Math.max(...sides.map(s => s.steps))
								? "after the last step"
								: `step ${Math.floor(at)}`,
			samples = sides.map(s => view.sample(s, x)),
			values = samples.map((i, k) => (i < 0 ? NaN : lines[k][i]));
		const figure = (side: Side, k: number) =>
			el(
				"li",
				{},
				el("i", { class: `key line-${side.letter.toLowerCase()}` }),
				el(
					"span",
					{},
					view.d.same ? "" : `${side.letter} `,
					samples[k] < 0
						? el("span", { class: "when" }, side.n ? "has ended or not begun" : "not recorded")
						: Number.isNaN(values[k])
							? el("span", { class: "when" }, "unknown")
							: el("b", {}, format.bytes(values[k])),
					samples[k] >= 0 &&
						!side.coarse &&
						view.state.axis !== "event" &&
						el("span", { class: "when" }, ` event ${format.count(side.event[samples[k]])}`),
				),
			);
		const delta = values[1] - values[0];
		return [
			el("li", { class: "when" }, where),
			...sides.map(figure).filter((_, k) => !view.d.same || !Number.isNaN(values[k])),
			...(Number.isNaN(delta)
				? []
				: [
						el(
							"li",
							{ class: delta > 0 ? "d-grown" : delta < 0 ? "d-shrunk" : "" },
							el("span", {}, "B − A ", el("b", {}, delta ? format.change(delta) : "=")),
						),
					]),
		];
	}

	private ticks(W: number): { at: number; text: string }[] {
		const { view } = this,
			{ x0, x1, axis } = view.state,
			last = Math.max(...view.d.sides.map(s => s.steps));
		return format
			.ticks(view.named(x0), view.named(x1), Math.max(2, Math.floor(W / 110)))
			.filter(v => axis !== "step" || (v >= 0 && v <= last))
			.map(v => ({ at: (v - view.named(x0)) / (x1 - x0), text: format.count(Math.round(v * 1000) / 1000) }));
	}

	private draw(g: Pen, W: number, lines: Lines, hi: number): void {
		const { view, height } = this,
			{ state, d } = view,
			columns = d.sides.map((s, k) => this.columns(s, lines[k], W)),
			y = (v: number) => top + (1 - v / hi) * height,
			px = (x: number) => ((x - state.x0) / (state.x1 - state.x0)) * W;
		// Steps, as stripes.
		if (state.axis === "step") {
			g.fillStyle = css("sunk");
			const from = Math.floor(view.named(state.x0)),
				to = Math.ceil(view.named(state.x1)),
				last = Math.max(...d.sides.map(s => s.steps));
			if (to - from < W / 4)
				for (let k = from; k < to; k++)
					if (k % 2 === 0 && k >= 0 && k < last) {
						const a = px(k - view.named(0));
						g.fillRect(a, top, px(k + 1 - view.named(0)) - a, height);
					}
		}
		// What lies between the lines, in the color of its sign.
		const [a, b] = columns;
		for (const [name, up] of [
			["grown", true],
			["shrunk", false],
		] as const) {
			g.fillStyle = css(name);
			for (let c = 0; c < W;) {
				const from = c++;
				if (!(up ? b[from] > a[from] : b[from] < a[from])) continue;
				while (c < W && a[c] === a[from] && b[c] === b[from]) c++;
				g.fillRect(
					from,
					y(Math.max(a[from], b[from])),
					c - from,
					y(Math.min(a[from], b[from])) - y(Math.max(a[from], b[from])),
				);
			}
		}
		d.sides.forEach((s, k) => {
			const line = columns[k];
			g.strokeStyle = css("side-" + s.letter.toLowerCase());
			g.lineWidth = k ? 1.75 : 1.5;
			g.setLineDash(k ? [] : [5, 3]);
			g.beginPath();
			let open = false;
			for (let c = 0; c < W; c++) {
				if (Number.isNaN(line[c])) open = false;
				else {
					if (!open) g.moveTo(c, y(line[c]));
					else if (line[c] !== line[c - 1]) {
						g.lineTo(c, y(line[c - 1]));
						g.lineTo(c, y(line[c]));
					}
					if (c === W - 1 || Number.isNaN(line[c + 1])) g.lineTo(c + 1, y(line[c]));
					open = true;
				}
			}
			g.stroke();
			g.setLineDash([]);
		});
		if (this.marked) this.marks(g, W, px, y);
		upright(g, px(state.cursor), W, top, height, css("ink"), []);
		if (!Number.isNaN(state.hover)) upright(g, px(state.hover), W, top, height, css("muted"), []);
	}

	/** The moments that are compared, the peaks where these are others, and requests that failed. */
	private marks(g: Pen, W: number, px: (x: number) => number, y: (v: number) => number): void {
		const { view } = this,
			labels: { left: number; right: number; y: number }[] = [];
		for (const s of view.d.same ? [view.d.sides[1]] : view.d.sides)
			for (const event of s.head.ooms) {
				const i = view.sampleOf(s, event),
					x = i < 0 ? -1 : px(view.middle(s, i));
				if (x < 0 || x > W) continue;
				g.fillStyle = css("bad");
				g.textAlign = x > W - 16 ? "right" : "center";
				g.fillText(
					view.d.same ? "✕" : "✕ " + s.letter,
					x,
					Math.min(y(s.active[i]) + 16, top + this.height - 2),
				);
			}
		for (const s of view.d.sides) {
			for (const [event, word] of [
				[s.head.at, ""],
				[s.head.peak, " peak"],
			] as const) {
				const i = view.sampleOf(s, event);
				if (i < 0 || (word && (s.head.at === s.head.peak || (view.d.same && s.letter === "A")))) continue;
				const x = px(view.middle(s, i)),
					at = y(s.active[i]);
				if (x < 0 || x > W) continue;
				g.fillStyle = css("side-" + s.letter.toLowerCase());
				g.beginPath();
				g.moveTo(x - 5, at - 10);
				g.lineTo(x + 5, at - 10);
				g.lineTo(x, at - 2);
				g.closePath();
				g.fill();
				const text =
						(word && view.d.same ? "" : s.letter) +
						(word || (s.head.at === s.head.peak ? " peak" : " compared")),
					w = g.measureText(text).width,
					left = x + 8 + w > W ? x - 8 - w : x + 8,
					meets = (y: number) =>
						labels.some(l => Math.abs(l.y - y) < 13 && left < l.right && l.left < left + w),
					base = Math.max(at - 3, 11);
				const line = [0, -1, 1, -2, 2].map(k => base + 14 * k).find(y => y >= 11 && !meets(y)) ?? base;
				labels.push({ left, right: left + w, y: line });
				g.textAlign = "left";
				g.fillText(text, left, line);
			}
		}
	}

	picture(): Picture {
		const W = this.width,
			left = 70,
			lines = this.lines(),
			hi = this.highest(lines);
		return {
			width: left + W + 1,
			height: top + this.height + 40,
			draw: g => {
				g.save();
				g.translate(left, 0);
				this.draw(g, W, lines, hi);
				g.fillStyle = css("muted");
				g.textAlign = "right";
				for (const t of yTicks(0, hi, this.height)) g.fillText(t.text, -8, top + t.at + 4);
				for (const t of this.ticks(W)) {
					g.textAlign = t.at < 0.02 ? "left" : t.at > 0.97 ? "right" : "center";
					g.fillText(t.text, t.at * W, top + this.height + 16);
				}
				g.textAlign = "right";
				g.fillText(axisNames[this.view.state.axis], W, top + this.height + 32);
				g.restore();
			},
		};
	}

	/** Each side's samples. */
	csv(): Cell[][] {
		const { view } = this,
			lines = this.lines();
		return [
			["side", "event", axisNames[view.state.axis], this.what + " (bytes)"],
			...view.d.sides.flatMap((s, k) =>
				Array.from(s.event, (e, i): Cell[] => [
					s.letter,
					s.coarse ? "" : e,
					view.named(view.middle(s, i)),
					Number.isNaN(lines[k][i]) ? "" : lines[k][i],
				]),
			),
		];
	}
}

/** Says what mouse and keys do. */
export const overlayHelp =
	`Drag: pan. Shift and drag: zoom in there. ${zoomKey} and wheel: zoom. ` +
	"Keys: ← → move the cursor, N and B by a step, P goes to the peaks, + and − zoom, 0 shows all.";
