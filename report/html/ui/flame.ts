// The flame graph of what is live at the cursor: calls as boxes as wide as the memory they hold.

import { addRest, Call, Leaf, leaves } from "./calls";
import { el, swatch } from "./dom";
import * as format from "./format";
import { FlameGraph } from "./graph";
import { Panel } from "./panel";
import { looked, State, View } from "./view";

const colors = ["f0", "f0", "f0", "f1", "f2", "f3"]; // by origin

export class Flame extends FlameGraph<View> implements Panel {
	readonly needs: (keyof State)[] = ["cursor", ...looked, "inverted", "around", "focus"];
	private all = 0; // bytes of what is live

	protected leaves(): Leaf[] {
		const { view } = this,
			{ cursor } = view.state;
		this.all = view.dev.restAt(cursor)?.reduce((a, b) => a + b, 0) ?? 0;
		this.all += view.dev.lives.totalAt(cursor);
		return leaves(view, view.live(cursor, false));
	}

	protected override complete(root: Call): void {
		addRest(this.view, root);
	}

	protected amount(c: Call): string {
		return format.bytes(c.bytes);
	}

	protected color(c: Call): string {
		return colors[c.origin];
	}

	protected faded(c: Call): boolean {
		const { frames } = this.view;
		return frames !== null && !frames[c.frame];
	}

	protected nothing(): string {
		const { around } = this.view.state;
		return around ? `${around} holds nothing at the cursor.` : "Nothing is live at the cursor.";
	}

	protected describe(c: Call, self: boolean): string {
		return (
			`${c.name}: ${format.bytes(c.bytes)}, ${format.percent(c.bytes, this.all)} of what is live, ` +
			format.plural(c.count, "block") +
			(self ? `; self ${format.bytes(c.self)}` : "")
		);
	}

	protected explain(): (Node | string)[] {
		const { match, state } = this.view;
		if (match) {
			const { bytes } = this.view.matched();
			return [
				`“${state.search}” is in the stacks of ${format.bytes(bytes)}, ` +
					`${format.percent(bytes, this.all)} of what is live; its calls are drawn strong.`,
			];
		}
		const key = (name: string, text: string) =>
			el("span", { class: "nowrap" }, swatch(`var(--${name})`), " " + text);
		return [
			state.around
				? "Above the function is who called it, below what it called. Click another to look at that. "
				: "Click or press Enter to focus on a call; with Shift, to see its callers and callees. ",
			key("f3", "your code"),
			", ",
			key("f2", "other packages"),
			", ",
			key("f1", "PyTorch and the standard library"),
			", ",
			key("f0", "interpreter and C++"),
			".",
		];
	}
}
