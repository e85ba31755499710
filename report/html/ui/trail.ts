// The way through the page: each step is one of the browser's history, so that Back undoes it, and
// the address of each is a link to it.

import { address, Linked } from "./link";

/** How long nothing must change for what changed to be a step, in milliseconds. */
const settle = 400;

/** The parts of a page, of which one is shown: by their indices. */
interface Parts {
	readonly shown: number;
	open(i: number): void;
	listen(f: () => void): void;
}

/** What the browser keeps of a step: the device that is shown, and the links of all that were opened. */
interface Step {
	shown: number;
	links: Record<number, string>;
}

export class Trail {
	private readonly views = new Map<number, Linked>();
	private timer = 0;
	private last = ""; // the step that was kept, as a text

	constructor(
		private readonly devices: Parts,
		private readonly ordinals: number[],
		private readonly name = (i: number) => `gpu${ordinals[i]}`,
	) {
		devices.listen(() => this.soon());
		addEventListener("popstate", e => this.back(e.state as Step | null));
	}

	/** Follows the view of device i; the address may say what it shows. */
	add(i: number, view: Linked): void {
		this.views.set(i, view);
		const { ordinal, link } = address();
		if (link && ordinal === this.ordinals[i]) view.follow(link);
		view.listen(() => this.soon());
	}

	/** Makes how the page opened the first step. */
	start(): void {
		this.keep("replaceState", location.href);
	}

	/** The address of what is shown now. */
	link(): string {
		this.step();
		const i = this.devices.shown,
			v = this.views.get(i);
		return v ? new URL(this.hash(i, v), location.href).href : location.href;
	}

	private hash(i: number, v: Linked): string {
		return `#${this.name(i)}${v.link()}`;
	}

	private soon(): void {
		clearTimeout(this.timer);
		this.timer = setTimeout(() => this.step(), settle);
	}

	private step(): void {
		clearTimeout(this.timer);
		const i = this.devices.shown,
			v = this.views.get(i);
		if (v && JSON.stringify(this.now()) !== this.last) this.keep("pushState", this.hash(i, v));
	}

	private now(): Step {
		return {
			shown: this.devices.shown,
			links: Object.fromEntries([...this.views].map(([i, v]) => [i, v.link()])),
		};
	}

	private keep(how: "pushState" | "replaceState", url: string): void {
		const now = this.now();
		try {
			history[how](now, "", url);
			this.last = JSON.stringify(now);
		} catch {
			// A browser that takes no more steps, or none of such a page: only Back is lost.
		}
	}

	/** Goes to a step that was kept; one without a state is a link that was followed, of this page or typed. */
	private back(step: Step | null): void {
		clearTimeout(this.timer);
		const { ordinal, link } = address(),
			named = this.ordinals.indexOf(ordinal),
			to = step?.links ?? (link ? { [named]: link } : {});
		this.devices.open(step ? step.shown : named);
		for (const [i, v] of this.views) if (step || i in to) v.follow(to[i] ?? "");
		if (step) this.last = JSON.stringify(this.now());
		else this.keep("replaceState", location.href);
	}
}
