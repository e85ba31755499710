// The axes of the pictures, and the line of the cursor.

import { el, fill } from "./dom";
import * as format from "./format";
import { Pen } from "./picture";
import { View } from "./view";

/** A value of an axis, and where it is. */
export interface Tick {
	at: number;
	text: string;
}

/** The values of an axis of bytes from lo to hi, by their distance from the upper edge of a picture. */
export function yTicks(lo: number, hi: number, height: number): Tick[] {
	return format
		.byteTicks(hi, Math.max(height / 60, 5))
		.filter(v => v >= lo)
		.map(v => ({
			at: (1 - (v - lo) / (hi - lo)) * height,
			text: format.bytes(v).replace(".00", "").replace(".0 ", " "),
		}));
}

/** The values of the axis that a picture shows a part of, by their part of its width. */
export function xTicks(view: View, width: number): Tick[] {
	const { x0, x1, axis } = view.state;
	return format.ticks(x0, x1, Math.max(2, Math.floor(width / 110))).map(v => ({
		at: (v - x0) / (x1 - x0),
		text: v === 0 ? "0" : axis === "event" ? format.count(v) : format.micros(v).replace(/\.0+ /, " "),
	}));
}

export function xName(view: View): string {
	return view.state.axis === "event" ? "trace event" : "time since the first event";
}

/** Says how many bytes a picture's height has, from lo to hi; top is above it. */
export function yAxis(to: HTMLElement, lo: number, hi: number, height: number, top: number): void {
	fill(
		to,
		...yTicks(lo, hi, height).map(t => {
			const e = el("span", { class: "tick" }, t.text);
			e.style.top = t.at + top + "px";
			return e;
		}),
	);
}

/** Says which part of the trace a picture shows. */
export function xAxis(to: HTMLElement, ticks: Tick[], name: string): void {
	fill(
		to,
		...ticks.map(t => {
			const e = el("span", { class: "tick" }, t.text);
			e.style.left = t.at * 100 + "%";
			if (t.at < 0.02) e.style.transform = "none";
			else if (t.at > 0.97) e.style.transform = "translateX(-100%)";
			return e;
		}),
		el("span", { class: "x-label" }, name),
	);
}

/** Draws an upright line with a label, when it is in the picture. */
export function upright(
	g: Pen,
	at: number,
	W: number,
	top: number,
	height: number,
	color: string,
	dash: number[],
	label = "",
	row = 0,
): void {
	const x = Math.min(Math.max(Math.round(at), 0), W - 1) + 0.5;
	if (at < -1 || at > W + 1) return;
	g.strokeStyle = g.fillStyle = color;
	g.setLineDash(dash);
	g.lineWidth = 1.25;
	g.beginPath();
	g.moveTo(x, top);
	g.lineTo(x, top + height);
	g.stroke();
	g.setLineDash([]);
	g.textAlign = x > W - 60 ? "right" : "left";
	g.fillText(label, x + (x > W - 60 ? -4 : 4), top + 12 + 14 * row);
}

/** Places the box that says what is under the pointer. */
export function placeTip(tip: HTMLElement, at: { x: number; y: number }, W: number, lowest: number): void {
	const w = Math.min(380, W),
		left = at.x + 14 + w > W ? at.x - 14 - w : at.x + 14;
	tip.style.left = Math.max(Math.min(left, W - w), 0) + "px";
	tip.style.maxWidth = w + "px";
	tip.style.top = Math.min(at.y + 12, lowest) + "px";
}

/** Tells those who do not see a picture where its cursor is, and what is there: a text or a list. */
export function tell(box: HTMLElement, view: View, what: string | Element): void {
	const { dev, state } = view,
		text = typeof what === "string" ? what : [...what.children].map(e => e.textContent).join(", ");
	for (const [name, v] of [
		["min", -1],
		["max", dev.events - 1],
		["now", state.cursor],
		["text", `event ${state.cursor} ${dev.when(state.cursor)}, ${text}`],
	])
		box.setAttribute("aria-value" + name, String(v));
}
