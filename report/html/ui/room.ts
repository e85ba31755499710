// Blocks that a user chooses to free, and what that would do.

import { answerBox } from "./answer";
import { choice, el, fill } from "./dom";
import * as format from "./format";
import { Panel } from "./panel";
import { looked, State, View } from "./view";

type By = "site" | "purpose" | "block";

const mostRows = 60;

export class Room implements Panel {
	readonly name = "Make room";
	readonly needs: (keyof State)[] = ["cursor", ...looked, "freed", "pinned"];
	readonly element = el("div", { class: "panel room" });
	private by: By = "site";

	private readonly answer: HTMLElement;

	constructor(readonly view: View) {
		this.answer = answerBox(view, "Choose blocks that are live at the cursor to see what freeing them would do.");
	}

	/** Chooses rows, or no longer. */
	private choose(rows: number[], on: boolean): void {
		const next = new Set(this.view.state.freed);
		for (const r of rows)
			if (on) next.add(r);
			else next.delete(r);
		this.view.set({ freed: next });
	}

	render(): void {
		const { view } = this,
			{ state } = view,
			found = view.choosy ? view.live() : [];
		const button = (text: string, disabled: boolean, click: () => void) =>
			el("button", { type: "button", disabled, click }, text);
		fill(
			this.element,
			this.answer,
			el(
				"div",
				{ class: "toolbar" },
				choice(
					"Choose by",
					[
						["site", "site"],
						["purpose", "purpose"],
						["block", "block"],
					],
					this.by,
					v => {
						this.by = v as By;
						this.render();
						this.element.querySelector("select")!.focus();
					},
				),
				found.length > 0 && button("Choose what the search finds", false, () => this.choose(found, true)),
				state.pinned >= 0 &&
					button("Choose what is pinned", state.freed.has(state.pinned), () =>
						this.choose([state.pinned], true),
					),
				button("Clear", !state.freed.size, () => view.set({ freed: new Set() })),
			),
			this.table(),
			el("p", { class: "hint" }, "In Segments, Shift-click chooses a block."),
		);
	}

	/** What is live at the cursor, to be ticked. */
	private table(): HTMLElement {
		const { dev, state } = this.view,
			live = this.view.live(),
			name = {
				site: (row: number) => dev.tables.site(dev.stackOf(row)),
				purpose: (row: number) => dev.tables.categories[dev.kinds.category[dev.kind[row]]],
				block: (row: number) => `${dev.blockName(row)} ${dev.tables.site(dev.stackOf(row))}`,
			}[this.by];
		const of = new Map<string, number[]>();
		for (const row of live) {
			const key = name(row),
				list = of.get(key);
			if (list) list.push(row);
			else of.set(key, [row]);
		}
		const all = [...of].map(([name, rows]) => ({
			name,
			rows,
			bytes: rows.reduce((a, r) => a + dev.lives.size[r], 0),
		}));
		all.sort((a, b) => b.bytes - a.bytes || (a.name < b.name ? -1 : 1));
		const line = ({ name, rows, bytes }: (typeof all)[0], i: number) => {
			const on = rows.filter(r => state.freed.has(r)).length;
			const box = el("input", {
				type: "checkbox",
				checked: on === rows.length,
				"data-choice": i,
				"aria-label": "Free " + name,
				change: () => this.choose(rows, box.checked),
			});
			box.indeterminate = on > 0 && on < rows.length;
			return el(
				"tr",
				{ class: on ? "on" : "" },
				el("td", {}, box),
				el("td", { class: "n b" }, format.bytes(bytes)),
				el("td", { class: "n" }, format.count(rows.length)),
				el("td", { class: "path" }, name),
			);
		};
		const rest = all.length - mostRows,
			focused = this.element.contains(document.activeElement)
				? document.activeElement!.getAttribute("data-choice")
				: null;
		if (focused)
			queueMicrotask(() => this.element.querySelector<HTMLElement>(`[data-choice="${focused}"]`)?.focus());
		return el(
			"div",
			{ class: "scroll", tabindex: 0, role: "region", "aria-label": "blocks to free" },
			el(
				"table",
				{ class: "groups" },
				el(
					"thead",
					{},
					el(
						"tr",
						{},
						...["Free", "Bytes", "Blocks", this.by === "purpose" ? "Purpose" : "Allocated at"].map((t, i) =>
							el("th", { scope: "col", class: i === 1 || i === 2 ? "n" : "" }, t),
						),
					),
				),
				el("tbody", {}, ...all.slice(0, mostRows).map(line)),
			),
			rest > 0 && el("p", { class: "more" }, `… ${format.count(rest)} more; search to find them`),
		);
	}

	text(): string {
		return [...this.element.querySelectorAll(".answer p")].map(p => p.textContent + "\n").join("");
	}
}
