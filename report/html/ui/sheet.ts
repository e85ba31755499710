// What mouse and keys do: the most important in a line, the others on a sheet.

import { el, unique } from "./dom";
import { help } from "./keys";

/** The key that makes the wheel zoom. */
export const zoomKey = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘" : "Ctrl";

const mouse: [string, string][] = [
	[`${zoomKey} wheel`, "zoom around the pointer; after a click into the timeline, the wheel alone"],
	["Shift wheel", "zoom the height, after a click or with " + zoomKey],
	["Drag", "pan; two fingers zoom"],
	["Shift drag", "select a range"],
	["Click", "move the cursor and pin what is there"],
	["Shift click", "set an end of the range"],
	["Double-click", "zoom in"],
	["Color", "click a color: only that; again: all; with Shift: that, too"],
];

/** A line, and the sheet that its button and the key "?" open. */
export function keySheet(): HTMLElement {
	const title = unique("sheet"),
		pairs = (all: [string, string][]) =>
			el(
				"dl",
				{ class: "pairs" },
				...all.map(([k, v]) => el("div", {}, el("dt", {}, el("kbd", {}, k)), el("dd", {}, v))),
			);
	const dialog = el(
		"dialog",
		{ class: "sheet", "aria-labelledby": title, click: (e: Event) => e.target === dialog && dialog.close() },
		el(
			"div",
			{},
			el("h3", { id: title }, "Keys and mouse"),
			el("h4", {}, "While the timeline has the focus"),
			pairs(help),
			el("h4", {}, "Mouse and touch"),
			pairs(mouse),
			el("button", { type: "button", click: () => dialog.close() }, "Close"),
		),
	);
	const line = el(
		"div",
		{ class: "hint keys" },
		`Drag: pan. Shift and drag: select a range. ${zoomKey} and wheel: zoom; after a click into it, the wheel alone. `,
		el("button", { type: "button", click: () => dialog.showModal() }, "All keys: ?"),
		dialog,
	);
	document.addEventListener("keydown", e => {
		const typing = e.target instanceof Element && e.target.closest("input, select, textarea");
		if (e.key !== "?" || typing || !line.offsetParent || dialog.open) return;
		e.preventDefault();
		dialog.showModal();
	});
	return line;
}
