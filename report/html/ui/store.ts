// What a page shows: a state that its views share, and that tells them of changes.

export class Store<S extends object> {
	/** The state as the page opens. */
	readonly home: Readonly<S>;
	private readonly listeners: ((changed: Set<keyof S>) => void)[] = [];
	private changed = new Set<keyof S>();
	private scheduled = false;

	constructor(readonly state: S) {
		this.home = { ...state };
	}

	listen(f: (changed: Set<keyof S>) => void): void {
		this.listeners.push(f);
	}

	/** Changes the state; listeners hear of it before the next frame. */
	set(part: Partial<S>): void {
		for (const key of Object.keys(part) as (keyof S)[]) {
			if (this.state[key] === part[key]) continue;
			this.state[key] = part[key]!;
			this.changed.add(key);
		}
		this.follow(this.changed);
		if (this.changed.size && !this.scheduled) {
			this.scheduled = true;
			requestAnimationFrame(() => this.flush());
		}
	}

	/** Works out what follows from what changed, before listeners hear of it. */
	protected follow(_changed: Set<keyof S>): void {}

	/** Tells the listeners now. */
	flush(): void {
		this.scheduled = false;
		const changed = this.changed;
		this.changed = new Set();
		if (changed.size) for (const f of this.listeners) f(changed);
	}
}

/** The part of an axis that is shown. */
export interface Span {
	x0: number;
	x1: number;
}

/** A part of an axis of a length, within its bounds and not below the least width. */
export function within(x0: number, x1: number, full: number, least: number): Span {
	const width = Math.min(Math.max(x1 - x0, Math.min(least, full)), full),
		mid = (x0 + x1) / 2;
	let lo = Math.max(mid - width / 2, 0);
	const hi = Math.min(lo + width, full);
	lo = Math.max(hi - width, 0);
	return { x0: lo, x1: hi };
}
