// The flame graph of a difference: calls as boxes as wide as what changed below them, in the color of what became of
// it.

import { Call, Leaf } from "./calls";
import { State, stateOf, View } from "./changes";
import { css } from "./colors";
import { el, swatch } from "./dom";
import * as format from "./format";
import { Box, FlameGraph, rowHeight } from "./graph";
import { Pen } from "./picture";

/** The colors of states, properties of the style sheet, and what they mean. */
const states = { grown: "grown", new: "came", shrunk: "shrunk", gone: "left", same: "sunk" } as const;

export class SignedFlame extends FlameGraph<View> {
	readonly needs: (keyof State)[] = ["row", "by", "search", "inverted", "around", "focus"];
	private all = 0; // bytes that changed

	protected leaves(): Leaf[] {
		const { d } = this.view,
			out: Leaf[] = [];
		this.all = 0;
		for (let p = 0; p < d.pairs; p++) {
			const bytes = Math.abs(d.delta(p));
			this.all += bytes;
			if (bytes) out.push({ way: d.ways[p], bytes, count: 1, a: d.a[p], b: d.b[p], chosen: this.view.has(p) });
		}
		return out;
	}

	protected amount(c: Call): string {
		return c.b === c.a ? "±0 B" : format.change(c.b - c.a);
	}

	protected color(c: Call): string {
		return states[stateOf(c.a, c.b)];
	}

	/** What is new or gone is hatched; of what both grew and shrank, a bar tells the parts. */
	protected override mark(g: Pen, { x, w, row: y, call: c }: Box): void {
		const state = stateOf(c.a, c.b),
			net = c.b - c.a,
			grew = (c.bytes + net) / 2;
		if ((state === "new" || state === "gone") && w > 4) {
			const dir = state === "new" ? 1 : -1;
			g.save();
			g.beginPath();
			g.rect(x, y, w - 1, rowHeight - 1);
			g.clip();
			g.strokeStyle = css("card");
			g.globalAlpha *= 0.5;
			g.lineWidth = 1.5;
			g.beginPath();
			for (let at = x - rowHeight; at < x + w + rowHeight; at += 9) {
				g.moveTo(at, y + (dir > 0 ? rowHeight : 0));
				g.lineTo(at + rowHeight, y + (dir > 0 ? 0 : rowHeight));
			}
			g.stroke();
			g.restore();
		}
		if (grew > 0 && grew < c.bytes && w > 8) {
			const part = (grew / c.bytes) * (w - 1);
			g.fillStyle = css("grown-line");
			g.fillRect(x, y + rowHeight - 4, part, 3);
			g.fillStyle = css("shrunk-line");
			g.fillRect(x + part, y + rowHeight - 4, w - 1 - part, 3);
		}
	}

	protected override label(c: Call, w: number): string {
		return w > 120 ? `${this.amount(c)} ${super.label(c, w - 70)}` : super.label(c, w);
	}

	protected faded(c: Call): boolean {
		const { view } = this;
		return !c.chosen && view.state.row >= 0 ? true : view.state.search !== "" && !view.finds(c.name);
	}

	protected nothing(): string {
		return this.view.state.around
			? `${this.view.state.around} changed nothing.`
			: "Nothing changed in the memory of any stack.";
	}

	protected describe(c: Call): string {
		const state = stateOf(c.a, c.b),
			net = c.b - c.a,
			grew = (c.bytes + net) / 2,
			mixed = grew > 0 && grew < c.bytes;
		return (
			`${c.name}: ${this.amount(c)} (${state === "same" ? "as much as before" : state}; ` +
			`A ${format.bytes(c.a)}, B ${format.bytes(c.b)}), ${format.plural(c.count, "stack")}, ` +
			`${format.percent(c.bytes, this.all)} of what changed` +
			(mixed ? `: ${format.change(grew)} and ${format.change(grew - c.bytes)}` : "")
		);
	}

	protected explain(): (Node | string)[] {
		const { view } = this,
			{ search, around } = view.state;
		if (!this.root.bytes) return [];
		if (search) return [`Calls with “${search}” are drawn strong.`];
		const key = (name: string, text: string) =>
			el("span", { class: "nowrap" }, swatch(`var(--${name})`), " " + text);
		return [
			"A box is as wide as what changed below it. ",
			around
				? "Above the function is who called it, below what it called. "
				: "Click or press Enter to focus on a call; with Shift, to see its callers and callees. ",
			key("grown", "grown"),
			", ",
			key("came", "new, hatched"),
			", ",
			key("shrunk", "shrunk"),
			", ",
			key("left", "gone, hatched"),
			". A bar at the foot of a box tells how much of it grew and shrank.",
			view.d.onlyA ? " (A) marks lines that are in stacks of side A alone." : "",
		];
	}
}
