// What is live at the cursor, in several ways: a row of tabs, of which one is shown.

import { el, resized, unique } from "./dom";
import { Source } from "./save";
import { State, View } from "./view";

export interface Panel<S = State> extends Source {
	readonly element: HTMLElement;
	/** Draws the panel anew. It is called when the panel is on the screen. */
	render(): void;
	/** What makes the panel change. */
	readonly needs: (keyof S)[];
	/** The panel as plain text. */
	text?(): string;
}

/** Tabs as the ARIA practices describe them: arrows move between them. None is shown until one is asked for. */
export class Tabs {
	readonly element: HTMLElement;
	private readonly buttons: HTMLButtonElement[];
	private current = 0;

	constructor(
		private readonly view: View,
		label: string,
		private readonly panels: Panel[],
		after: HTMLElement | null = null,
	) {
		this.buttons = panels.map((p, i) => {
			const tab = unique("tab"),
				panel = unique("panel");
			p.element.id = panel;
			p.element.setAttribute("role", "tabpanel");
			p.element.setAttribute("aria-labelledby", tab);
			return el(
				"button",
				{ id: tab, type: "button", role: "tab", "aria-controls": panel, click: () => this.show(i) },
				p.name,
			);
		});
		const bar = el(
			"div",
			{ role: "tablist", class: "tabs", "aria-label": label, keydown: (e: KeyboardEvent) => this.key(e) },
			...this.buttons,
		);
		this.element = el(
			"div",
			{ class: "panels" },
			el("div", { class: "tab-bar" }, bar, after),
			...panels.map(p => p.element),
		);
		view.listen(changed => {
			if (this.named(view.state.tab) !== this.current) this.open(view.state.tab);
			else if (changed.has("detail") || panels[this.current].needs.some(k => changed.has(k)))
				panels[this.current].render();
		});
		resized(this.element, () => panels[this.current].render());
		matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => panels[this.current].render());
	}

	get shown(): Panel {
		return this.panels[this.current];
	}

	show(i: number): void {
		this.current = i;
		this.buttons.forEach((b, k) => {
			b.setAttribute("aria-selected", String(k === i));
			b.tabIndex = k === i ? 0 : -1;
			this.panels[k].element.hidden = k !== i;
		});
		this.view.set({ tab: i ? this.panels[i].name : "" });
		this.panels[i].render();
	}

	/** Shows the panel of that name, or else the first. */
	open(name: string): void {
		this.show(this.named(name));
	}

	private named(name: string): number {
		return Math.max(
			this.panels.findIndex(p => p.name === name),
			0,
		);
	}

	private key(e: KeyboardEvent): void {
		const n = this.panels.length;
		const to = { ArrowRight: this.current + 1, ArrowLeft: this.current + n - 1, Home: 0, End: n - 1 }[e.key];
		if (to === undefined) return;
		e.preventDefault();
		this.show(to % n);
		this.buttons[to % n].focus();
	}
}
