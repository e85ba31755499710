// Another limit of the device: where the first request would fail, under each setting that was replayed. What was not
// replayed is bounded, never guessed.

import { Curves } from "./curves";
import { Ladder, Rung } from "./data";
import { el, fill } from "./dom";
import * as format from "./format";
import { Device } from "./model";
import { View } from "./view";

const unit = 2 << 20; // bytes of a step, as the replays search
const rest = 250; // milliseconds without a move before a question

/** Between which events the first request fails: never before safe, at sure at the latest; Infinity is never. */
export function bounds(l: Ladder, limit: number): { safe: number; sure: number } {
	const step = (events: Float64Array, bytes: Float64Array) => {
		const k = bytes.findIndex(b => limit < b);
		return k < 0 ? Infinity : events[k];
	};
	return {
		safe: l.safe && (!l.safeTo || limit <= l.safeTo) ? step(l.safeEvent, l.safeBytes) : 0,
		sure: step(l.sureEvent, l.sureBytes),
	};
}

/** What is computed of a setting with a limit: at it, and next to it. */
function computed(l: Ladder, limit: number): { at?: Rung; below?: Rung; above?: Rung } {
	return {
		at: l.rungs.find(r => r.limit === limit),
		below: l.rungs.findLast(r => r.limit < limit),
		above: l.rungs.find(r => r.limit > limit),
	};
}

export class Limits {
	readonly element: HTMLElement;
	private readonly range: HTMLInputElement;
	private readonly value = el("output", {});
	private readonly list = el("ul", { class: "fates" });
	private readonly state = el("p", { class: "hint", role: "status" });
	private readonly known = new Map<string, Rung>(); // answers of the server, by setting and limit
	private timer = 0;
	private question: AbortController | null = null;

	/** The settings are those that the curves show; server answers for limits that the page lacks, about device i. */
	constructor(
		readonly view: View,
		private readonly curves: Curves,
		private readonly i: number,
		private readonly server?: string,
	) {
		const { replays, limit } = view.dev.whatif;
		const all = replays.flatMap(r => [r.peak, ...r.ladder.rungs.map(x => x.limit)]),
			most = Math.max(limit, ...all);
		this.range = el("input", {
			type: "range",
			min: 1,
			max: Math.ceil((most * 1.1) / unit),
			"aria-label": "Memory that PyTorch can reserve",
			input: () => this.move(Number(this.range.value) * unit),
		});
		const button = (text: string, label: string, dir: number) =>
			el("button", { type: "button", "aria-label": label, title: label, click: () => this.next(dir) }, text);
		this.element = el(
			"div",
			{ class: "live on limits", role: "group", "aria-label": "Another limit" },
			el("h4", {}, "With another limit"),
			el(
				"div",
				{ class: "limit-bar" },
				el("span", {}, "PyTorch can reserve ", this.value),
				this.range,
				button("‹", "Next smaller limit that was replayed", -1),
				button("›", "Next larger limit that was replayed", 1),
			),
			this.list,
			this.state,
			el(
				"p",
				{ class: "hint" },
				"Tick settings in the table to compare. " +
					(server
						? "Each limit is replayed when you ask for it."
						: "A limit at which the run was replayed is exact, to the accuracy above; between two, only what " +
							"holds for any limit is said."),
			),
		);
		view.listen(c => c.has("limit") && this.render());
		curves.listen(() => this.render());
		this.render();
	}

	/** The limit in bytes: that of the run while nobody chose another. */
	get limit(): number {
		const { dev, state } = this.view;
		return state.limit || dev.whatif.limit || Math.ceil(dev.whatif.replays[0].peak / unit) * unit;
	}

	private get rows(): number[] {
		return this.curves.rows;
	}

	/** The limits at which what is shown was replayed, rising. */
	private get stops(): number[] {
		const { replays } = this.view.dev.whatif;
		return [...new Set(this.rows.flatMap(k => replays[k].ladder.rungs.map(r => r.limit)))].sort((a, b) => a - b);
	}

	/** Takes a limit, or one close by that was replayed. */
	private move(bytes: number): void {
		const near = (Number(this.range.max) * unit) / 150,
			stop = this.stops.find(s => Math.abs(s - bytes) < near);
		this.view.set({ limit: stop ?? bytes });
	}

	private next(dir: number): void {
		const now = this.limit,
			to = dir < 0 ? this.stops.findLast(s => s < now) : this.stops.find(s => s > now);
		if (to) this.view.set({ limit: to });
	}

	render(): void {
		const { dev } = this.view,
			limit = this.limit;
		this.range.value = String(Math.round(limit / unit));
		const text = format.bytes(limit) + (limit === dev.whatif.limit ? " (as in the run)" : "");
		this.value.textContent = text;
		this.range.setAttribute("aria-valuetext", text);
		fill(this.list, ...this.rows.map(k => this.fate(k, limit)));
		clearTimeout(this.timer);
		this.question?.abort();
		this.state.textContent = "";
		if (this.server) this.timer = setTimeout(() => this.ask(limit), rest);
	}

	/** How the run fares under a setting. */
	private fate(k: number, limit: number): HTMLElement {
		const { dev } = this.view,
			{ name, ladder } = dev.whatif.replays[k],
			{ at: packed, below, above } = computed(ladder, limit),
			x = packed ?? this.known.get(`${k} ${limit}`),
			b = bounds(ladder, limit);
		if (x?.start) return row(dev, name, 0, 0, "what was there before the trace does not fit");
		if (x && x.failed < 0)
			return row(
				dev,
				name,
				Infinity,
				Infinity,
				`${about(x)}no request fails, ${format.bytes(x.peak)} reserved at most`,
			);
		if (x)
			return row(
				dev,
				name,
				x.failed,
				x.failed,
				about(x) + "first fails ",
				this.link(x.failed),
				`, for ${format.bytes(x.asked)}`,
			);
		if (b.safe === Infinity) return row(dev, name, b.safe, b.sure, "no request fails");
		const beside = [
			below && `${format.bytes(below.limit)}: ${short(below)}`,
			above && `${format.bytes(above.limit)}: ${short(above)}`,
		].filter(s => s);
		const doubt = beside.length ? el("span", { class: "hint" }, ` Replayed: ${beside.join("; ")}.`) : "";
		const sure =
			b.sure === Infinity
				? null
				: b.sure < 0
					? "before the trace"
					: this.link(b.sure, b.safe > 0 ? "" : "at event ");
		if (sure && b.safe > 0)
			return row(
				dev,
				name,
				b.safe,
				b.sure,
				"first fails between events ",
				this.link(b.safe, ""),
				" and ",
				sure,
				".",
				doubt,
			);
		if (sure) return row(dev, name, 0, b.sure, "fails, at the latest ", sure, ".", doubt);
		if (b.safe > 0)
			return row(
				dev,
				name,
				b.safe,
				b.sure,
				"nothing fails before event ",
				this.link(b.safe, ""),
				"; later is not known.",
				doubt,
			);
		return row(dev, name, 0, Infinity, "not known.", doubt);
	}

	private link(event: number, before = "at event "): HTMLElement {
		return el(
			"button",
			{ type: "button", class: "link event-link", click: () => this.view.go(event) },
			before + format.count(event),
		);
	}

	/** Asks the server for what the page lacks, one setting after another. */
	private async ask(limit: number): Promise<void> {
		const question = (this.question = new AbortController()),
			{ replays } = this.view.dev.whatif;
		for (const k of this.rows) {
			if (computed(replays[k].ladder, limit).at || this.known.has(`${k} ${limit}`)) continue;
			this.state.textContent = `Replaying ${replays[k].name} …`;
			try {
				const query = new URLSearchParams({ device: String(this.i), setting: String(k), limit: String(limit) }),
					answer = await fetch(`${this.server}?${query}`, { signal: question.signal });
				if (!answer.ok) throw new Error(await answer.text());
				this.known.set(`${k} ${limit}`, (await answer.json()) as Rung);
			} catch (e) {
				if (question.signal.aborted) return;
				this.state.textContent = `The server did not answer (${e instanceof Error ? e.message : e}).`;
				return;
			}
			if (question.signal.aborted) return;
			fill(this.list, ...this.rows.map(k => this.fate(k, limit)));
		}
		this.state.textContent = "";
	}
}

const about = (r: Rung) => (r.about ? "estimated: " : "");

function short(r: Rung): string {
	return r.start
		? "does not even start"
		: about(r) + (r.failed < 0 ? "nothing fails" : `first fails at event ${format.count(r.failed)}`);
}

/** A setting, its fate over the trace as a strip, and in words. */
function row(dev: Device, name: string, safe: number, sure: number, ...words: (Node | string)[]): HTMLElement {
	const part = (e: number) => Math.min(Math.max((100 * e) / Math.max(dev.events, 1), 0), 100),
		strip = el("span", { class: "strip", "aria-hidden": "true" });
	const piece = (kind: string, from: number, to: number) => {
		if (to <= from) return;
		const p = el("i", { class: kind });
		p.style.left = from + "%";
		p.style.width = to - from + "%";
		strip.append(p);
	};
	piece("runs", 0, part(safe));
	piece("open", part(safe), part(sure));
	if (sure !== Infinity) {
		const cross = el("b", {}, "✕");
		cross.style.left = part(sure) + "%";
		strip.append(cross);
	}
	return el(
		"li",
		{},
		el("span", { class: "path" }, name),
		strip,
		el("span", { class: "fate" + (sure === Infinity ? "" : " fails") }, ...words),
	);
}
