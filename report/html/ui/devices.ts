// With several devices, one is shown at a time.

import { el } from "./dom";
import { address } from "./link";

/** The devices of the page, which has tabs of their sections where there are several. */
export class Devices {
	/** Index of the device that is shown; of several, -1 before start. */
	shown = -1;
	private readonly sections: (HTMLElement | null)[];
	private readonly there: number[]; // those that the page has a section of
	private readonly buttons = new Map<number, HTMLButtonElement>();
	private readonly listeners: (() => void)[] = [];

	/** Calls show for the devices that are looked at, before they are. */
	constructor(
		private readonly ordinals: number[],
		private readonly show: (i: number) => void,
	) {
		this.sections = ordinals.map(o => document.getElementById("gpu" + o));
		this.there = ordinals.map((_, i) => i).filter(i => this.sections[i]);
	}

	listen(f: () => void): void {
		this.listeners.push(f);
	}

	/** Shows the device that the address names, or else the first with most to see. */
	start(): void {
		const { sections, there, ordinals } = this;
		if (there.length > 1) {
			const bar = el("nav", { class: "card devices", "aria-label": "Devices" });
			for (const k of there) {
				const b = el("button", { type: "button", click: () => this.open(k) }, `GPU ${ordinals[k]}`);
				this.buttons.set(k, b);
				bar.append(b);
			}
			sections[there[0]]!.before(bar);
		}
		const named = there.find(k => ordinals[k] === address().ordinal);
		this.open(named ?? there.find(k => !sections[k]!.querySelector("details.fold")) ?? there[0]);
	}

	open(i: number): void {
		if (!this.there.includes(i)) return;
		if (this.there.length > 1)
			for (const k of this.there) {
				this.sections[k]!.hidden = k !== i;
				this.sections[k]!.querySelector<HTMLDetailsElement>("details.fold")?.setAttribute("open", "");
				this.buttons.get(k)!.setAttribute("aria-pressed", String(k === i));
			}
		this.show(i);
		if (this.shown === i) return;
		this.shown = i;
		for (const f of this.listeners) f();
	}
}
