// Reserved memory over the trace under other settings, as replayed: the table's rows, drawn.

import { placeTip, tell, upright, xAxis, xName, xTicks, yAxis } from "./axis";
import { firstAt } from "./bands";
import { css } from "./colors";
import { el, fill, pen, redrawn, swatch } from "./dom";
import * as format from "./format";
import { keys } from "./keys";
import { drag } from "./pointer";
import { View } from "./view";

const height = 200,
	top = 6;

export class Curves {
	readonly shown: Set<number>; // rows of the table
	private readonly box = el("div", {
		class: "curve-box",
		tabindex: 0,
		role: "slider",
		"aria-label": "Moment in the trace, under other settings",
		"aria-orientation": "horizontal",
	});
	private readonly canvas = el("canvas", { "aria-hidden": "true" });
	private readonly tip = el("div", { class: "tip", "aria-hidden": "true", hidden: true });
	private readonly yAxis = el("div", { class: "tl-y", "aria-hidden": "true" });
	private readonly xAxis = el("div", { class: "tl-x", "aria-hidden": "true" });
	private readonly legend = el("ul", { class: "tl-legend", "aria-label": "Reserved at the cursor" });
	private readonly listeners: (() => void)[] = [];
	private hover: { x: number; y: number } | null = null;

	/** Draws into place; the rows of table get a box each. */
	constructor(
		readonly view: View,
		place: HTMLElement,
		table: HTMLElement,
	) {
		const { best, replays, last } = view.dev.whatif;
		this.shown = new Set([0, best].filter(i => replays[i]?.bytes.length));
		this.box.append(this.canvas, this.tip);
		place.append(
			this.legend,
			el("div", { class: "tl-grid" }, this.yAxis, this.box, this.xAxis),
			el(
				"p",
				{ class: "hint" },
				`Tick settings in the table to compare. Each point is the maximum over ` +
					`${format.plural(last[0] + 1, "event")}; zoom and cursor follow the timeline.`,
			),
		);
		place.classList.add("on");
		table.querySelectorAll<HTMLTableRowElement>("tbody tr").forEach((tr, i) => {
			if (!replays[i]?.bytes.length) return;
			const check = el("input", {
				type: "checkbox",
				checked: this.shown.has(i),
				"aria-label": "Draw " + replays[i].name,
				change: () => {
					if (!this.shown.delete(i)) this.shown.add(i);
					this.render();
					for (const f of this.listeners) f();
				},
			});
			check.style.accentColor = `var(--${this.color(i)})`;
			tr.cells[0].prepend(check);
			tr.addEventListener("click", e => e.target !== check && check.click());
		});
		this.box.addEventListener("keydown", e => keys(e, view));
		drag(this.box, view, {
			width: () => Math.max(this.box.clientWidth, 1),
			hover: p => {
				this.hover = p;
				this.render();
			},
			click: p => view.set({ cursor: this.eventAt(p.x) }),
			zoomY: () => {},
			panY: () => {},
			range: (x0, x1) => view.set({ markA: view.eventAt(x0), markB: view.eventAt(x1) }),
			passed: () => {},
		});
		view.listen(changed => (["x0", "x1", "axis", "cursor"] as const).some(k => changed.has(k)) && this.render());
		redrawn(this.box, () => this.render());
	}

	/** Reserved bytes under a setting around an event. */
	at(row: number, event: number): number {
		const { last, replays } = this.view.dev.whatif;
		return replays[row].bytes[Math.min(firstAt(last, event), last.length - 1)];
	}

	private color(row: number): string {
		return row === 0
			? "reserved"
			: row === this.view.dev.whatif.best
				? "s3"
				: "s" + [1, 2, 4, 5, 6, 7, 8, 9][(row - 1) % 8];
	}

	private eventAt(x: number): number {
		const { x0, x1 } = this.view.state;
		return this.view.eventAt(x0 + (x / Math.max(this.box.clientWidth, 1)) * (x1 - x0));
	}

	/** Names and figures of what is drawn, after an event. */
	private figures(event: number): HTMLElement[] {
		const base = this.at(0, event);
		return this.rows.map(i => {
			const r = this.view.dev.whatif.replays[i],
				v = this.at(i, event),
				one = r.failures === 1;
			return el(
				"li",
				{},
				swatch(`var(--${this.color(i)})`),
				el(
					"span",
					{},
					r.name + " ",
					el("b", {}, format.bytes(v)),
					v !== base && ` (${format.change(v - base)})`,
					r.failures > 0 &&
						el(
							"span",
							{ class: "alarm" },
							` ✕ ${r.about ? "~" : ""}${format.plural(r.failures, "request")} ` +
								`${one ? "fails, " : "fail, first "}${format.bytes(r.asked)} at event ` +
								`${format.count(r.failed)}`,
						),
				),
			);
		});
	}

	/** Calls f when others are shown. */
	listen(f: () => void): void {
		this.listeners.push(f);
	}

	/** The settings that are shown, in the order of the table. */
	get rows(): number[] {
		return [...this.shown].sort((a, b) => a - b);
	}

	render(): void {
		const { view } = this,
			{ dev, state } = view,
			{ last, replays, limit } = dev.whatif,
			W = this.box.clientWidth;
		if (!W) return;
		const most = Math.max(...replays.map(r => r.peak), 1),
			hi = Math.max(most, limit < 2 * most ? limit : 0) * 1.12;
		const g = pen(this.canvas, W, top + height),
			x = (at: number) => ((at - state.x0) / (state.x1 - state.x0)) * W,
			y = (v: number) => top + (1 - v / hi) * height;
		const edge = (event: number) =>
			state.axis === "event" ? event : event < dev.events ? view.at(event) : view.full();
		yAxis(this.yAxis, 0, hi, height, top);
		xAxis(this.xAxis, xTicks(view, W), xName(view));
		if (limit && limit < hi) {
			g.strokeStyle = g.fillStyle = css("bad");
			g.setLineDash([4, 4]);
			g.strokeRect(-9, y(limit), W + 18, 999);
			g.setLineDash([]);
			g.fillText("most that can be reserved", 6, y(limit) - 4);
		}
		const rows = this.rows;
		rows.forEach((row, k) => {
			g.strokeStyle = css(this.color(row));
			g.lineWidth = Math.min(1.75 + 2 * (rows.length - 1 - k), 6); // what is the same shows on both sides
			g.beginPath();
			replays[row].bytes.forEach((v, i) => {
				const a = x(edge(i ? last[i - 1] + 1 : 0)),
					z = x(edge(last[i] + 1));
				if (z < 0 || a > W) return;
				g.lineTo(a, y(v));
				g.lineTo(z, y(v));
			});
			g.stroke();
		});
		for (const row of rows) {
			const { failed } = replays[row];
			if (failed < 0) continue;
			g.font = "bold 16px system-ui, sans-serif";
			g.textAlign = "center";
			g.fillStyle = css("bad");
			g.fillText("✕", Math.min(x(view.at(failed)), W - 8), y(this.at(row, failed)) + 6);
		}
		upright(g, x(view.at(state.cursor)), W, top, height, css("ink"), []);
		fill(this.legend, ...this.figures(state.cursor));
		tell(this.box, view, this.legend);
		this.tip.hidden = !this.hover || !rows.length;
		if (!this.hover) return;
		const event = this.eventAt(this.hover.x);
		upright(g, this.hover.x, W, top, height, css("muted"), []);
		fill(
			this.tip,
			el("p", { class: "tip-head" }, `event ${format.count(event)} ${dev.when(event)}`),
			el("ul", { class: "tl-legend" }, ...this.figures(event)),
		);
		placeTip(this.tip, this.hover, W, height - 40);
	}
}
