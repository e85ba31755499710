// What is pinned, in a box at the lower edge of the screen that moves nothing else.

import { copier, el, fill } from "./dom";
import { describe } from "./describe";
import { View } from "./view";

export function pinnedBox(view: View): HTMLElement {
	const box = el("div", { class: "pinned-box", hidden: true, role: "region", "aria-label": "Pinned allocation" });
	view.listen(c => (["pinned", "internals", "detail", "tab"] as const).some(k => c.has(k)) && show());
	const show = () => {
		const { dev, state } = view,
			row = state.pinned;
		box.hidden = row < 0 || state.tab === "Allocation"; // which says more
		if (box.hidden) return;
		const about = describe(view, row, 40),
			button = (text: string, click: () => void) => el("button", { type: "button", click }, text);
		fill(
			box,
			el(
				"div",
				{ class: "buttons" },
				el("b", {}, "Pinned"),
				button("Go to allocation", () => view.go(Math.max(dev.lives.born[row], 0))),
				button("Explain", () => view.set({ tab: "Allocation" })),
				copier("Copy", () => lines(about)),
				button("Unpin", () => view.set({ pinned: -1 })),
			),
			about,
		);
	};
	return el("div", { class: "dock" }, box);
}

/** The paragraphs and list items of an element, a line each. */
function lines(e: Element): string {
	return [...e.querySelectorAll("p, li")].map(line => line.textContent + "\n").join("");
}
