// The segments at the cursor: blocks where they lie, and the holes between them.

import { css, scheme } from "./colors";
import { el, fill, pen } from "./dom";
import * as format from "./format";
import { describe } from "./describe";
import { Segment } from "./model";
import { Panel } from "./panel";
import { State, View } from "./view";

const mostRows = 24,
	rowHeight = 26,
	barHeight = 17;

interface Spot {
	x0: number;
	x1: number;
	y: number;
	row: number;
	segment: Segment;
	hole: number;
}

export class Segments implements Panel {
	readonly name = "Segments";
	readonly needs: (keyof State)[] = ["cursor", "color", "search", "regex", "pick", "pinned"];
	readonly element = el("div", { class: "panel segs" });
	private readonly sums = el("p", { class: "sum" });
	private readonly canvas = el("canvas", { role: "img" });
	private readonly about = el("div", { class: "about", role: "status" });
	private readonly more = el("p", { class: "more" });
	private spots: Spot[] = [];

	constructor(readonly view: View) {
		this.element.append(this.sums, this.canvas, this.more, this.about);
		this.canvas.addEventListener("pointermove", e => this.hover(e));
		this.canvas.addEventListener("click", e => {
			const s = this.at(e);
			if (s && s.row >= 0) view.set({ pinned: s.row });
		});
	}

	render(): void {
		const { dev, state } = this.view,
			W = this.element.clientWidth;
		const all = dev.segments(state.cursor).sort((a, b) => b.size - a.size),
			shown = all.slice(0, mostRows);
		const reserved = all.reduce((a, s) => a + s.size, 0),
			active = all.reduce((a, s) => a + s.active, 0);
		const idle = all.filter(s => !s.live.length).reduce((a, s) => a + s.size, 0);
		const kinds = dev.free.at(state.cursor),
			sum = (name: string, v: number) => el("span", {}, name + " ", el("b", {}, format.bytes(v)));
		fill(
			this.sums,
			sum("Reserved", reserved),
			sum("active", active),
			...(kinds?.event === state.cursor
				? dev.tables.free.map((c, k) => kinds.bytes[k] > 0 && sum(c.name, kinds.bytes[k]))
				: [sum("free in used segments", reserved - active - idle), sum("free segments", idle)]),
			el("span", {}, "segments ", el("b", {}, format.count(all.length))),
		);
		const g = pen(this.canvas, W, Math.max(shown.length, 1) * rowHeight),
			left = 68,
			right = W > 560 ? 96 : 0;
		const wide = Math.max(W - left - right, 10),
			most = shown.length ? shown[0].size : 1;
		const colors = scheme(this.view),
			legend = colors.legend,
			ink = css("ink"),
			muted = css("muted"),
			free = css("free"),
			edge = css("free-line"),
			card = css("card");
		this.spots = [];
		g.clearRect(0, 0, W, shown.length * rowHeight);
		shown.forEach((s, i) => {
			const y = i * rowHeight + 2,
				scale = (Math.max(s.size / most, 0.01) * wide) / s.size;
			const x = (addr: number) => left + (addr - s.addr) * scale;
			g.fillStyle = ink;
			g.textAlign = "right";
			g.fillText(format.bytes(s.size), left - 8, y + 13);
			g.fillStyle = free;
			g.fillRect(left, y, s.size * scale, barHeight);
			g.strokeStyle = edge;
			g.setLineDash([3, 2]);
			g.strokeRect(left + 0.5, y + 0.5, Math.max(s.size * scale - 1, 1), barHeight - 1);
			g.setLineDash([]);
			let at = s.addr;
			for (const row of s.live) {
				const a = dev.addr[row],
					size = dev.lives.size[row];
				if (a > at) this.spots.push({ x0: x(at), x1: x(a), y, row: -1, segment: s, hole: a - at });
				at = a + size;
				g.globalAlpha = !this.view.hit(row) ? 0.15 : 1;
				g.fillStyle = row === state.pinned ? ink : legend[colors.of(row)].css;
				const w = size * scale;
				g.fillRect(x(a), y, Math.max(w - (w > 3 ? 0.75 : 0), 0.5), barHeight);
				g.globalAlpha = 1;
				this.spots.push({ x0: x(a), x1: x(at), y, row, segment: s, hole: 0 });
			}
			if (at < s.addr + s.size)
				this.spots.push({
					x0: x(at),
					x1: x(s.addr + s.size),
					y,
					row: -1,
					segment: s,
					hole: s.addr + s.size - at,
				});
			const unused = s.size - s.active;
			if (s.live.length && unused > s.active && unused > s.size / 8) {
				g.fillStyle = ink;
				let last = -99;
				for (const row of s.live) {
					const mid = x(dev.addr[row] + dev.lives.size[row] / 2);
					if (mid - last < 8) continue;
					last = mid;
					g.beginPath();
					g.moveTo(mid, y + barHeight);
					g.lineTo(mid - 4, y + barHeight + 5);
					g.lineTo(mid + 4, y + barHeight + 5);
					g.fill();
				}
			}
			if (right) {
				g.fillStyle = unused > s.active ? css("warn") : muted;
				g.textAlign = "left";
				g.fillText(
					unused === 0 ? "full" : s.live.length ? `${format.bytes(unused)} free` : "all free",
					W - right + 8,
					y + 13,
				);
			}
			g.strokeStyle = card;
		});
		const rest = all.slice(mostRows);
		this.more.textContent = rest.length
			? `… ${format.plural(rest.length, "more segment")}, ${format.bytes(rest.reduce((a, s) => a + s.size, 0))}`
			: "";
		this.canvas.setAttribute(
			"aria-label",
			`${format.plural(all.length, "segment")}, ${format.bytes(reserved)} reserved, ${format.bytes(active)} of ` +
				`it active`,
		);
		fill(
			this.about,
			el("p", { class: "hint" }, "▲ marks blocks that keep a mostly free segment from being released."),
		);
	}

	text(): string {
		const { dev, state } = this.view;
		return (
			dev
				.segments(state.cursor)
				.map(
					s =>
						`${dev.hex(s.addr).slice(2)}\t${format.bytes(s.size)}\t${format.bytes(s.size - s.active)} ` +
						`free\t${s.live.length}\t${dev.placeName(s.place)}`,
				)
				.join("\n") + "\n"
		);
	}

	private at(e: MouseEvent): Spot | null {
		let near: Spot | null = null,
			far = 3;
		for (const s of this.spots) {
			if (e.offsetY < s.y || e.offsetY > s.y + rowHeight) continue;
			const off = e.offsetX < s.x0 ? s.x0 - e.offsetX : e.offsetX > s.x1 ? e.offsetX - s.x1 : 0;
			if (off < far) {
				far = off;
				near = s;
			}
		}
		return near;
	}

	private hover(e: MouseEvent): void {
		const s = this.at(e),
			d = this.view.dev;
		if (!s) return;
		const where =
			`in a segment of ${format.bytes(s.segment.size)} at ${d.hex(s.segment.addr)}, ` +
			`${d.placeName(s.segment.place)}, ${format.bytes(s.segment.size - s.segment.active)} free`;
		fill(
			this.about,
			s.row >= 0 ? describe(this.view, s.row, 6) : el("p", {}, el("b", {}, format.bytes(s.hole)), " free"),
			el("p", { class: "hint" }, where),
		);
	}
}
