// Says in words what a band is.

import { el } from "./dom";
import { never } from "./bands";
import * as format from "./format";
import { noteWord } from "./labels";
import { heldBy } from "./holders";
import type { Timeline } from "./timeline";
import { View } from "./view";

const trusts = ["", "low", "medium", "high"];

/** An allocation: size, lifetime, what for, stack, of which more than 9 frames are to be scrolled. */
export function describe(view: View, row: number, frames: number): HTMLElement {
	const whole = frames > 9;
	const d = view.dev,
		k = d.kind[row],
		size = d.lives.size[row],
		asked = d.kinds.requested[k],
		place = d.kinds.place[k];
	const trust = trusts[d.kinds.trust[k]],
		name = d.tables.categories[d.kinds.category[k]];
	const all = d.tables.frames(d.kinds.stack[k], view.state.internals),
		shown = all.slice(0, frames);
	return el(
		"div",
		{ class: "alloc" },
		el(
			"p",
			{},
			el("b", {}, format.bytes(size)),
			asked !== size ? ` (${format.bytes(asked)} requested)` : "",
			" · ",
			name,
			trust && ` (${trust} confidence)`,
		),
		el("p", {}, life(view, row)),
		el("p", { class: "where" }, `${d.blockName(row)}, ${d.whereName(place)}`),
		...noted(d.notes(row), whole),
		heldBy(d, row, whole),
		el("p", { class: "site" }, d.tables.site(d.kinds.stack[k])),
		shown.length > 0 &&
			el(
				"ol",
				{ class: "stack", ...(whole && { tabindex: 0 }) },
				...shown.map(f => el("li", {}, f)),
				all.length > shown.length && el("li", { class: "more" }, `… ${all.length - shown.length} more`),
			),
	);
}

/** What was noted beside an allocation; without all, only the first notes, cut. */
function noted(notes: { kind: string; text: string }[], all: boolean): HTMLElement[] {
	const cut = (s: string) => (all || s.length <= 90 ? s : s.slice(0, 89) + "…");
	return notes
		.slice(0, all ? notes.length : 3)
		.map(n => el("p", { class: "noted" }, el("span", { class: "hint" }, noteWord(n.kind) + " "), cut(n.text)));
}

function life(view: View, row: number): string {
	const d = view.dev,
		born = d.lives.born[row],
		end = d.lives.freed[row],
		asked = d.asked[row];
	const from = born < 0 ? "from before the trace" : `since event ${format.count(born)} ${d.when(born)}`;
	if (end === never)
		return asked === never ? `${from}, never freed` : `${from}, freed by the program, waiting for another stream`;
	let s = `${from} to event ${format.count(end)} ${d.when(end)}`;
	if (born >= 0) {
		s += `: ${format.plural(end - born, "event")}`;
		if (d.hasTimes) s += `, ${d.clock.exact ? "" : "about "}${format.micros(d.timeOf(end) - d.timeOf(born))}`;
	}
	return s;
}

/** A sum of allocations that have no band. */
export function describeMerged(t: Timeline, group: number): HTMLElement {
	const name = t.scheme.groups[group].name,
		n = t.frame.merged[group] ?? 0;
	if (t.view.state.mode === "stacked") return el("p", {}, name);
	return el(
		"p",
		{},
		`${name}: `,
		n
			? `${format.plural(n, "allocation")} in this picture, each too small for a pixel`
			: "allocations that are not in this page",
	);
}
