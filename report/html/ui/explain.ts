// Everything that is known of one allocation: the one that is pinned.

import { answer } from "./answer";
import { never } from "./bands";
import { el, fill } from "./dom";
import { waits } from "./fit";
import * as format from "./format";
import { heldBy } from "./holders";
import { noteWord } from "./labels";
import { Device } from "./model";
import { Panel } from "./panel";
import { grown } from "./picks";
import { codeOf } from "./source";
import { State, View } from "./view";

const trusts = ["", "low", "medium", "high"];

/** The blocks before and after a block at its first address, in the page; -1 for none. */
export function tenants(dev: Device, row: number): { before: number; after: number } {
	const addr = dev.addr[row];
	let before = row - 1,
		after = row + 1;
	while (before >= 0 && !dev.holds(before, addr)) before--;
	while (after < dev.lives.n && !dev.holds(after, addr)) after++;
	return { before, after: after < dev.lives.n ? after : -1 };
}

export class Explain implements Panel {
	readonly name = "Allocation";
	readonly needs: (keyof State)[] = ["pinned", "cursor", "internals"];
	readonly element = el("div", { class: "panel explain" });

	constructor(readonly view: View) {}

	render(): void {
		const { view } = this,
			{ dev, state } = view,
			row = state.pinned;
		if (row < 0) {
			fill(
				this.element,
				el(
					"p",
					{ class: "empty" },
					"Pin an allocation to have it explained: click on one in the timeline, in Segments or in Events.",
				),
			);
			return;
		}
		const pair = (name: string, ...what: (Node | string | null | false)[]) =>
			what.some(x => x) && el("div", {}, el("dt", {}, name), el("dd", {}, ...what.map(w => w || "")));
		const k = dev.kind[row],
			trust = trusts[dev.kinds.trust[k]],
			t = dev.tables,
			frames = t.visible(dev.kinds.stack[k], state.internals);
		fill(
			this.element,
			el(
				"dl",
				{ class: "about-it" },
				pair("Block", this.place(row)),
				pair("Size", this.size(row)),
				pair("Lifetime", this.life(row)),
				pair("Purpose", dev.tables.categories[dev.kinds.category[k]], trust && ` (${trust} confidence)`),
				...dev.notes(row).map(n => pair(noteWord(n.kind), n.text)),
				pair("Kept by", ...this.keeper(row)),
				pair("If freed", ...this.freed(row)),
				pair("Address had", ...this.around(row)),
				pair(
					"Stack",
					el("p", { class: "site" }, dev.tables.site(dev.kinds.stack[k])),
					frames.length > 0 &&
						el("ol", { class: "hops" }, ...frames.map(n => el("li", {}, t.frame(n), codeOf(t, n)))),
				),
			),
		);
	}

	/** The event after which the allocation is looked at: the cursor's, or else one of its own. */
	private moment(row: number): number {
		const { born, freed } = this.view.dev.lives,
			{ cursor } = this.view.state;
		return freed[row] <= cursor ? Math.max(freed[row] - 1, born[row]) : Math.max(cursor, born[row]);
	}

	private place(row: number): string {
		const { dev } = this.view,
			at = dev.addr[row],
			s = dev.segments(this.moment(row)).find(s => at >= s.addr && at < s.addr + s.size),
			range = `${dev.blockName(row)}, ${dev.hex(at)} to ${dev.hex(at + dev.lives.size[row])}, `;
		if (!s) return range + dev.whereName(dev.kinds.place[dev.kind[row]]);
		const offset = at > s.addr ? format.bytes(at - s.addr) + " into" : "at the start of";
		return `${range}${offset} a segment of ${format.bytes(s.size)} at ${dev.hex(s.addr)}; ${dev.whereName(s.place)}`;
	}

	private size(row: number): string {
		const { dev } = this.view,
			size = dev.lives.size[row],
			asked = dev.kinds.requested[dev.kind[row]];
		return (
			`${format.bytes(asked)} requested, ${format.bytes(size)} taken` +
			(size > asked ? ` (${format.bytes(size - asked)} more, by rounding)` : "")
		);
	}

	private life(row: number): string {
		const { dev } = this.view,
			{ born, freed } = dev.lives,
			b = born[row],
			e = freed[row],
			asked = dev.asked[row];
		const from = b < 0 ? "From before the trace" : `From event ${this.when(b)}`;
		const wait = asked < e && asked >= 0 ? `, freed by the program at event ${this.when(asked)}` : "";
		if (e === never)
			return from + (asked === never ? ", not freed in the trace" : wait + ", waits for another stream");
		const span = b >= 0 && [
			format.plural(e - b, "event"),
			dev.hasTimes && `${dev.clock.exact ? "" : "about "}${format.micros(dev.timeOf(e) - dev.timeOf(b))}`,
			this.laps(b, e),
		];
		return `${from}${wait} to event ${this.when(e)}${span ? ": " + span.filter(s => s).join(", ") : ""}`;
	}

	/** An event with its time and step. */
	private when(event: number): string {
		const { dev } = this.view,
			step = this.step(event);
		return [format.count(event), dev.when(event), step >= 0 && `(step ${step})`].filter(s => s).join(" ");
	}

	private step(event: number): number {
		const { first, last } = this.view.dev.steps,
			i = first.findLastIndex(f => f <= event);
		return i >= 0 && event <= last[i] ? i : -1;
	}

	private laps(from: number, to: number): string {
		const a = this.step(from),
			b = this.step(to);
		return a < 0 || b < 0 ? "" : a === b ? "within one step" : `over ${format.plural(b - a, "step border")}`;
	}

	private keeper(row: number): (Node | string | null)[] {
		const { dev } = this.view,
			out: (Node | string | null)[] = [];
		dev.growth.forEach((g, i) => {
			if (grown(dev, i).has(row))
				out.push(
					el(
						"p",
						{},
						"A finding counts it: these stacks leave memory behind each time, and the program had not freed " +
							`this block after event ${format.count(g.horizon)}.`,
					),
				);
		});
		const held = heldBy(dev, row, true);
		if (held) return [held, ...out];
		if (dev.asked[row] !== never) return ["Nothing any more: the program freed it.", ...out];
		return [
			...out,
			el(
				"p",
				{ class: "hint" },
				"Which Python object keeps it is not known: the recorder tells, in a file beside the snapshot.",
			),
		];
	}

	private freed(row: number): (Node | string | null)[] {
		const { view } = this,
			{ dev, state } = view,
			at = this.moment(row);
		if (waits(dev, row, at)) return ["Nothing: the program has freed it, and another stream may still use it."];
		return [
			el("p", { class: "hint" }, at === state.cursor ? "At the cursor" : `After event ${format.count(at)}`),
			...answer(view, at, [row]),
			el(
				"button",
				{
					type: "button",
					click: () => {
						view.go(at);
						view.set({ freed: new Set([...state.freed, row]), tab: "Make room" });
					},
				},
				"Free it with others",
			),
		];
	}

	private around(row: number): (Node | string | null)[] {
		const { view } = this,
			{ dev } = view,
			{ before, after } = tenants(dev, row),
			doubt = dev.leftOut.lives > 0 ? " in this page" : "";
		const tenant = (word: string, r: number, none: string) =>
			el(
				"p",
				{},
				el("span", { class: "hint" }, word + " "),
				r < 0
					? none + doubt
					: el(
							"button",
							{
								type: "button",
								class: "tenant",
								click: () => {
									view.go(Math.max(dev.lives.born[r], 0));
									view.set({ pinned: r });
								},
							},
							el("b", {}, dev.blockName(r)),
							` ${format.bytes(dev.lives.size[r])}, ` +
								(dev.lives.born[r] < 0
									? "from before the trace"
									: `from event ${format.count(dev.lives.born[r])}`) +
								(dev.lives.freed[r] === never ? "" : ` to ${format.count(dev.lives.freed[r])}`) +
								`, ${dev.tables.site(dev.stackOf(r))}`,
						),
			);
		return [tenant("Before", before, "nobody"), tenant("After", after, "nobody")];
	}

	text(): string {
		return [...this.element.querySelectorAll("dl > div")]
			.map(d => {
				const lines = [...d.querySelectorAll("dd p, dd li")].map(e => e.textContent);
				return `${d.querySelector("dt")!.textContent}\t${lines.length ? lines.join("; ") : d.querySelector("dd")!.textContent}\n`;
			})
			.join("");
	}
}
