// Where a server stands behind the page, it gives what the page leaves out of what one looks at.

import { unpack, WindowHeader } from "./data";
import { el } from "./dom";
import { View } from "./view";

const rest = 120; // milliseconds without a move before a question
const patience = 200; // milliseconds without an answer before a word about it
const narrow = 50_000; // events of a window that is worth asking for with what lies beside it

export class Windows {
	readonly element = el("p", { class: "hint", role: "status" });
	private asked = "";
	private timer = 0;
	private question: AbortController | null = null;

	/** The server's answers about device i of the page are at url. */
	constructor(
		private readonly view: View,
		private readonly url: string,
		private readonly i: number,
	) {
		view.dev.served = true;
		view.listen(changed => (["x0", "x1", "axis", "cursor"] as const).some(k => changed.has(k)) && this.soon());
		this.soon();
	}

	private soon(): void {
		clearTimeout(this.timer);
		this.timer = setTimeout(() => this.ask(), rest);
	}

	/** The events after which all should be known. Of the whole trace the page has the largest already. */
	private wanted(): { first: number; last: number } {
		const { view } = this,
			{ x0, x1, cursor } = view.state;
		if (x0 <= 0 && x1 >= view.full()) return { first: cursor, last: cursor };
		return { first: view.eventAt(x0) - 1, last: view.eventAt(x1) };
	}

	private async ask(): Promise<void> {
		const { view } = this,
			{ dev } = view,
			at = view.state.cursor;
		let { first, last } = this.wanted();
		if (!dev.leftOut.lives || (dev.lives.knows(first, last) && !dev.restAt(at))) return;
		const beside = last - first < narrow && last > first ? last - first : 0;
		first = Math.max(first - beside, -1);
		last = Math.min(last + beside, dev.events - 1);
		const query = new URLSearchParams({
			device: String(this.i),
			first: String(first),
			last: String(last),
			at: String(at),
		}).toString();
		if (query === this.asked) return;
		this.asked = query;
		this.question?.abort();
		const question = (this.question = new AbortController());
		const word = setTimeout(() => (this.element.textContent = "Loading allocations …"), patience);
		try {
			const answer = await fetch(this.url + "?" + query, { signal: question.signal });
			if (!answer.ok) throw new Error(await answer.text());
			view.adopt(unpack<WindowHeader>(new Uint8Array(await answer.arrayBuffer())));
			this.element.textContent = "";
		} catch (e) {
			if (question.signal.aborted) return;
			this.asked = "";
			this.element.textContent =
				`Could not load more detail (${e instanceof Error ? e.message.trim() : e}). ` +
				`The page shows what it has.`;
		} finally {
			clearTimeout(word);
		}
	}
}
