// What changed, as a table: each row leads to its calls in the flame graph and to its curve.

import { State, View } from "./changes";
import { choice, el, fill } from "./dom";
import * as format from "./format";
import { heads } from "./heads";
import { Cell } from "./save";

const mostRows = 200;

const words: Record<string, string> = {
	site: "site",
	stack: "whole stack",
	category: "category",
	module: "module",
	"category,site": "category and site",
};

export class Rows {
	readonly name = "Changes";
	readonly element = el("div", { class: "panel" });
	readonly needs: (keyof State)[] = ["by", "sort", "down", "row", "search", "focus", "around"];
	/** Chooses what the rows are. */
	readonly by: HTMLElement;

	constructor(readonly view: View) {
		const by = choice(
			"Group by",
			view.d.tables.map(t => [t.kind, words[t.kind] ?? t.kind]),
			view.state.by,
			v => view.set({ by: v, row: -1 }),
		);
		view.listen(c => c.has("by") && (by.querySelector("select")!.value = view.state.by));
		this.by = by;
	}

	/** The rows in their order. */
	private order(): number[] {
		const { table, state } = this.view,
			sign = state.down ? -1 : 1,
			key = (i: number) =>
				state.sort === "delta"
					? Math.abs(table.b[i] - table.a[i])
					: state.sort === "a"
						? table.a[i]
						: table.b[i];
		return [...table.names.keys()].sort((i, k) =>
			state.sort === "name"
				? table.names[i] < table.names[k]
					? sign
					: -sign
				: sign * (key(i) - key(k)) || i - k,
		);
	}

	/** Which rows have memory of the call that has the focus, and of what the search finds; null for all. */
	private found(): Set<number> | null {
		const { view } = this,
			{ d, chosen, state, table } = view,
			focused = chosen && state.row < 0;
		if (!focused && !state.search) return null;
		const out = new Set<number>(),
			seen = new Map<string, boolean>();
		const finds = (text: string) => {
			if (!seen.has(text)) seen.set(text, view.finds(text));
			return seen.get(text)!;
		};
		for (let p = 0; p < d.pairs; p++)
			for (const side of [0, 1]) {
				const row = table.of[side][p];
				if (!row || (focused && !chosen.has[side](p))) continue;
				if (!state.search || finds(table.names[row - 1]) || d.ways[p].some(f => finds(f.name)))
					out.add(row - 1);
			}
		return out;
	}

	render(): void {
		const { view } = this,
			{ table: t, state } = view,
			found = this.found(),
			all = this.order().filter(i => !found || found.has(i) || i === state.row),
			changed = t.names.reduce((sum, _, i) => sum + Math.abs(t.b[i] - t.a[i]), 0),
			most = t.names.reduce((most, _, i) => Math.max(most, Math.abs(t.b[i] - t.a[i])), 1),
			head = heads(state, next => view.set(next));
		const size = (n: number) => el("td", { class: "n" }, n ? format.bytes(n) : "–");
		const rows = all.slice(0, mostRows).map(i => {
			const delta = t.b[i] - t.a[i],
				on = i === state.row,
				bar = el("i", { class: delta > 0 ? "up" : "down", hidden: !delta });
			bar.style.width = (50 * Math.abs(delta)) / most + "%";
			return el(
				"tr",
				{ class: on ? "on" : "", click: (e: Event) => e.target instanceof HTMLButtonElement || this.choose(i) },
				size(t.a[i]),
				size(t.b[i]),
				el("td", { class: `n b d-${t.state[i]}` }, delta ? format.change(delta) : "="),
				el("td", { class: "sign c" }, el("span", {}, bar)),
				el("td", { class: "n c" }, format.percent(Math.abs(delta), changed)),
				el("td", { class: `state c d-${t.state[i]}` }, t.noise[i] ? "~" : t.state[i]),
				el(
					"td",
					{ class: "path" },
					el(
						"button",
						{ type: "button", class: "link", "aria-pressed": String(on), click: () => this.choose(i) },
						t.names[i],
					),
				),
			);
		});
		const sum = (of: Float64Array) => all.reduce((a, i) => a + of[i], 0),
			a = sum(t.a),
			b = sum(t.b);
		fill(
			this.element,
			el(
				"div",
				{ class: "scroll", tabindex: 0, role: "region", "aria-label": "what changed" },
				el(
					"table",
					{ class: "groups changes" },
					el(
						"thead",
						{},
						el(
							"tr",
							{},
							head("a", "A"),
							head("b", "B"),
							head("delta", "B − A"),
							el("td", { class: "c" }),
							el("th", { scope: "col", class: "n c", title: "of all that changed" }, "Share"),
							el("td", { class: "c" }),
							head("name", words[t.kind] ?? t.kind, ""),
						),
					),
					el("tbody", {}, ...rows),
					el(
						"tfoot",
						{},
						el(
							"tr",
							{},
							el("td", { class: "n b" }, format.bytes(a)),
							el("td", { class: "n b" }, format.bytes(b)),
							el("td", { class: "n b" }, b === a ? "=" : format.change(b - a)),
							el("td", { class: "c" }),
							el("td", { class: "c" }),
							el("td", { class: "c" }),
							el("td", {}, all.length < t.names.length ? "total of these rows" : "total"),
						),
					),
				),
			),
			all.length > mostRows && el("p", { class: "more" }, `… ${format.count(all.length - mostRows)} more`),
			t.noise.some(v => v > 0) &&
				el("p", { class: "hint" }, "~: no larger than what differs between the runs of one side."),
		);
	}

	private choose(row: number): void {
		const { state } = this.view;
		this.view.set({ row: state.row === row ? -1 : row, focus: "", around: "" });
	}

	csv(): Cell[][] {
		const { table: t } = this.view;
		return [
			["A (bytes)", "B (bytes)", "B - A (bytes)", "state", t.kind],
			...this.order().map((i): Cell[] => [t.a[i], t.b[i], t.b[i] - t.a[i], t.state[i], t.names[i]]),
		];
	}
}
