// The whole trace in small, and which part of it the timeline shows.

import { columns } from "./bands";
import { css } from "./colors";
import { el, pen, redrawn } from "./dom";
import { View } from "./view";

const height = 44;

export class Minimap {
	readonly element: HTMLElement;
	private readonly canvas = el("canvas", { "aria-hidden": "true" });
	private readonly picture = el("canvas");
	private drawn = "";

	constructor(readonly view: View) {
		this.element = el("div", { class: "mini", "aria-hidden": "true" }, this.canvas);
		view.listen(changed => {
			if (["x0", "x1", "axis", "cursor", "mode", "detail"].some(k => changed.has(k as never))) this.render();
		});
		redrawn(this.element, () => this.render());
		this.brush();
	}

	render(): void {
		const { view } = this,
			{ state } = view,
			W = this.element.clientWidth;
		if (W === 0 || view.dev.events === 0) return;
		const g = pen(this.canvas, W, height),
			full = view.full();
		g.drawImage(this.whole(W), 0, 0, W, height);
		const a = (state.x0 / full) * W,
			z = Math.max((state.x1 / full) * W, a + 2);
		g.globalAlpha = 0.62;
		g.fillStyle = css("card");
		g.fillRect(0, 0, a, height);
		g.fillRect(z, 0, W - z, height);
		g.globalAlpha = 1;
		g.strokeStyle = css("ink");
		g.strokeRect(a + 0.5, 0.5, Math.max(z - a - 1, 1), height - 1);
		g.fillStyle = css("ink");
		for (const x of [a, z]) g.fillRect(x - 2, height / 2 - 8, 4, 16);
		g.fillRect((view.at(state.cursor) / full) * W, 0, 1, height);
	}

	/** The picture below the window, which seldom changes. */
	private whole(W: number): HTMLCanvasElement {
		const { dev, state } = this.view,
			color = css("active-fill"),
			key = [W, state.axis, state.mode, color, state.detail, devicePixelRatio].join();
		if (key === this.drawn) return this.picture;
		this.drawn = key;
		const g = pen(this.picture, W, height),
			edges = this.view.edges(W, 0, this.view.full());
		const cols =
				state.mode === "free"
					? dev.free.columns(edges)
					: columns(state.mode === "reserved" ? dev.ranges : dev.lives, edges, dev.events),
			most = cols.total.reduce((a, v) => Math.max(a, v), 1);
		g.fillStyle = color;
		for (let c = 0; c < cols.n; c++) {
			const h = (cols.total[c] / most) * (height - 4);
			g.fillRect(c, height - h, 1, h);
		}
		return this.picture;
	}

	/** A drag inside the window moves it, at its edges resizes it, elsewhere draws a new one. */
	private brush(): void {
		const e = this.element;
		let anchor = -1,
			last = -1; // the fixed end of a window that is drawn; where a move came from
		const place = (p: PointerEvent) =>
			((p.clientX - e.getBoundingClientRect().left) / Math.max(e.clientWidth, 1)) * this.view.full();
		e.addEventListener("pointerdown", p => {
			e.setPointerCapture(p.pointerId);
			const { x0, x1 } = this.view.state,
				x = place(p),
				near = this.view.full() * (8 / Math.max(e.clientWidth, 1));
			const whole = x0 <= 0 && x1 >= this.view.full();
			if (Math.abs(x - x0) < near) anchor = x1;
			else if (Math.abs(x - x1) < near) anchor = x0;
			else if (x > x0 && x < x1 && !whole) last = x;
			else anchor = x;
		});
		e.addEventListener("pointermove", p => {
			const x = place(p),
				{ x0, x1 } = this.view.state;
			if (anchor >= 0) this.view.zoom(Math.min(anchor, x), Math.max(anchor, x));
			if (last < 0) return;
			const shift = Math.min(Math.max(x - last, -x0), this.view.full() - x1);
			this.view.set({ x0: x0 + shift, x1: x1 + shift });
			last = x;
		});
		const up = () => (anchor = last = -1);
		e.addEventListener("pointerup", up);
		e.addEventListener("pointercancel", up);
	}
}
