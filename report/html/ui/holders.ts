// Who keeps what is live, as the recorder saw it at the dump: the end of the trace.

import { Holder } from "./data";
import { el, fill } from "./dom";
import * as format from "./format";
import { Device, gone, Group, waits } from "./model";
import { Panel } from "./panel";
import { held } from "./picks";
import { Cell } from "./save";
import { looked, State, View } from "./view";

export const isGhost = (h: Holder) => h.standing === "ghost";

const standings: Record<string, string> = {
	ghost: "ghost: its memory grows",
	other: "no sign of a leak",
	running: "in use by a running function",
};

/** The name of a holder, or what is in its place. */
export function title(d: Device, holder: number): string {
	const h = d.tables.holders[holder];
	return h
		? (isGhost(h) ? "ghost: " : "") + h.name
		: holder === gone
			? "unknown: freed before the dump"
			: "freed, waiting for another stream";
}

function named(d: Device, holder: number): (Node | string)[] {
	const h = d.tables.holders[holder];
	return h && isGhost(h) ? [el("span", { class: "badge b-ghost" }, "ghost"), " ", h.name] : [title(d, holder)];
}

/** Says who holds a block, nothing where no one looked. Without all, the middle of a long chain is left out. */
export function heldBy(d: Device, row: number, all: boolean): HTMLElement | null {
	const holder = d.holder[row];
	if (!d.held.bytes.length || holder === waits) return null;
	const h = d.tables.holders[holder];
	if (!h) return el("p", { class: "hint" }, "Holder unknown: freed before the dump.");
	if (!holder && d.tables.categories[d.kinds.category[d.kind[row]]] === "workspace")
		return el("p", {}, "A library's workspace: no Python tensor shows it.");
	if (!h.standing) return el("p", {}, "At the dump ", holder ? "held by one of " : "", h.name, ".");
	const chain = all || h.chain.length < 7 ? h.chain : [...h.chain.slice(0, 3), "…", ...h.chain.slice(-2)];
	return el(
		"div",
		{ class: "held" },
		el("p", {}, "At the dump held by ", ...named(d, holder)),
		el("p", { class: "chain" }, chain.join(" › ")),
	);
}

export class Holders implements Panel {
	readonly name = "Holders";
	readonly needs: (keyof State)[] = ["cursor", ...looked];
	readonly element = el("div", { class: "panel" });

	constructor(readonly view: View) {}

	/** What is live at the cursor by row of holders: ghosts first, then by bytes, then what has none. */
	sums(): Group[] {
		const { dev, match, state } = this.view,
			rows = dev.lives.liveAt(state.cursor).filter(row => !match || match[dev.stackOf(row)]);
		const rank = (g: Group) => (Number(g.name) < 1 ? 2 : isGhost(dev.tables.holders[Number(g.name)]) ? 0 : 1);
		return dev.group(rows, row => String(dev.holder[row])).sort((a, b) => rank(a) - rank(b));
	}

	csv(): Cell[][] {
		const { dev } = this.view;
		return [
			["bytes", "blocks", "held by", "is"],
			...this.sums().map(({ name, bytes, count }) => [
				bytes,
				count,
				title(dev, Number(name)),
				standings[dev.tables.holders[Number(name)]?.standing] ?? "",
			]),
		];
	}

	/** Highlights what a holder has, in the place of what was highlighted. */
	choose(holder: number): void {
		this.view.set({ pick: held(this.view.dev, holder) });
	}

	render(): void {
		const { dev, state, match } = this.view,
			last = dev.events - 1,
			all = this.sums();
		const rest = match ? 0 : (dev.restAt(state.cursor)?.reduce((a, b) => a + b, 0) ?? 0),
			sum = all.reduce((a, s) => a + s.bytes, rest);
		const most = Math.max(rest, ...all.map(s => s.bytes)),
			focused = document.activeElement?.getAttribute("data-holder");
		const line = (bytes: number, count: number, ...what: (Node | string)[]) => {
			const bar = el("span", { class: "fill" });
			bar.style.width = (100 * bytes) / most + "%";
			return el(
				"tr",
				{},
				el("td", { class: "n b" }, format.bytes(bytes)),
				el("td", { class: "n" }, format.percent(bytes, sum)),
				el("td", { class: "bars c" }, bytes <= most && el("span", { class: "track" }, bar)),
				el("td", { class: "n c" }, count ? format.count(count) : ""),
				el("td", { class: "who" }, ...what),
			);
		};
		const rows = all.flatMap(({ name, bytes, count }) => {
			const holder = Number(name),
				on = state.pick?.key === held(dev, holder).key,
				h = dev.tables.holders[holder];
			const tr = line(
				bytes,
				count,
				el(
					"button",
					{
						type: "button",
						class: "link",
						"data-holder": holder,
						"aria-expanded": String(on),
						click: () => (on ? this.view.set({ pick: null }) : this.choose(holder)),
					},
					on ? "▾ " : "▸ ",
					...named(dev, holder),
				),
			);
			tr.className = (on ? "on " : "") + (h?.standing ?? "");
			return on && h?.standing
				? [tr, el("tr", { class: "on" }, el("td", { colspan: 5 }, this.about(holder, h)))]
				: tr;
		});
		if (rest > 0) rows.push(line(rest, 0, "(not in this page, see above)"));
		fill(
			this.element,
			state.cursor !== last &&
				el(
					"p",
					{ class: "hint" },
					el("button", { type: "button", click: () => this.view.go(last) }, "Go to the dump"),
					" The recorder saw only the dump, which is the end of the trace: memory freed before it has no " +
						"known holder.",
				),
			el(
				"div",
				{ class: "scroll", tabindex: 0, role: "region", "aria-label": "holders" },
				el(
					"table",
					{ class: "held-by" },
					el(
						"thead",
						{},
						el(
							"tr",
							{},
							...["Bytes", "Share", "", "Blocks", "Held by"].map((t, i) =>
								el(
									t ? "th" : "td",
									{ scope: t ? "col" : undefined, class: ["n", "n", "c bars", "n c", ""][i] },
									t,
								),
							),
						),
					),
					el("tbody", {}, ...rows),
					el(
						"tfoot",
						{},
						line(
							sum,
							all.reduce((a, s) => a + s.count, 0),
							"total",
						),
					),
				),
			),
		);
		if (focused) this.element.querySelector<HTMLElement>(`[data-holder="${focused}"]`)?.focus();
	}

	/** What is known of a holder. */
	private about(holder: number, h: Holder): HTMLElement {
		const { dev: d } = this.view,
			whole = d.held.bytes[holder],
			here = d.lives.size.reduce((a, v, row) => (d.holder[row] === holder ? a + v : a), 0);
		const pair = (name: string, ...what: (Node | string | false)[]) =>
			what.some(x => x) && el("div", {}, el("dt", {}, name), el("dd", {}, ...what));
		return el(
			"dl",
			{ class: "about-it" },
			pair("Is", standings[h.standing] ?? "as expected"),
			pair(
				"Keeps",
				`${format.bytes(whole)} in ${format.plural(d.held.blocks[holder], "block")} at the dump`,
				here < whole && `, ${format.bytes(whole - here)} of it not in this page`,
				h.bytes > whole && `; ${format.bytes(h.bytes - whole)} on other devices`,
			),
			pair("Grows", h.grows),
			pair(
				"Frees",
				h.frees > 0 && `${format.bytes(h.frees)} when released`,
				h.shared > 0 && `; ${format.bytes(h.shared)} is also kept by ${h.with.join(", ") || "something else"}`,
			),
			pair("Chain", h.chain.length > 0 && el("ol", { class: "hops" }, ...h.chain.map(c => el("li", {}, c)))),
			pair("Fix", h.fix.length > 0 && el("pre", { class: "fix" }, h.fix.join("\n"))),
		);
	}
}
