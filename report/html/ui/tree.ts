// The live memory by call path, as lines that unfold.

import { addRest, asTable, asText, Call, calls, leaves } from "./calls";
import { el, fill } from "./dom";
import * as format from "./format";
import { Panel } from "./panel";
import { Cell } from "./save";
import { looked, State, View } from "./view";

const mostLines = 400;

export class Tree implements Panel {
	readonly name = "Call tree";
	readonly needs: (keyof State)[] = ["cursor", ...looked];
	readonly element = el("div", { class: "panel tree" });
	private readonly open = new Set<string>();
	private root!: Call;

	constructor(readonly view: View) {}

	render(): void {
		this.root = calls(leaves(this.view, this.view.live()));
		addRest(this.view, this.root);
		if (!this.open.size) {
			for (let c: Call | undefined = this.root; c; c = c.children[0]) {
				this.open.add(path(c));
				if (c.children.length > 1 && c !== this.root) break;
			}
		}
		this.draw();
	}

	text(): string {
		return asText(this.root, (c, depth) => "  ".repeat(depth) + `${format.bytes(c.bytes)}  ${c.name}`);
	}

	csv(): Cell[][] {
		return asTable(this.root);
	}

	private draw(focus = ""): void {
		const body = el("tbody", {}),
			todo: [Call, number][] = [[this.root, 0]];
		let lines = 0,
			toFocus: HTMLElement | null = null;
		for (let it = todo.pop(); it && lines < mostLines; it = todo.pop(), lines++) {
			const [c, depth] = it,
				id = path(c),
				leaf = !c.children.length,
				open = this.open.has(id);
			const name = leaf
				? el("span", { class: "leaf" }, c.name)
				: el(
						"button",
						{ type: "button", class: "link", "aria-expanded": String(open), click: () => this.toggle(id) },
						(open ? "▾ " : "▸ ") + c.name,
					);
			if (id === focus) toFocus = name;
			const cell = el("td", { class: "path" }, name);
			cell.style.paddingLeft = Math.min(depth, 24) * 12 + "px";
			body.append(
				el(
					"tr",
					{},
					el("td", { class: "n b" }, format.bytes(c.bytes)),
					el("td", { class: "n" }, format.percent(c.bytes, this.root.bytes)),
					el("td", { class: "n c" }, format.count(c.count)),
					el("td", { class: "n c" }, c.self ? format.bytes(c.self) : ""),
					cell,
				),
			);
			if (open) for (let i = c.children.length - 1; i >= 0; i--) todo.push([c.children[i], depth + 1]);
		}
		fill(
			this.element,
			el(
				"div",
				{ class: "scroll", tabindex: 0, role: "region", "aria-label": "call tree" },
				el(
					"table",
					{ class: "calls" },
					el(
						"thead",
						{},
						el(
							"tr",
							{},
							...["Bytes", "Share", "Blocks", "Self"].map(h =>
								el(
									"th",
									{ scope: "col", class: "n" + (h === "Blocks" || h === "Self" ? " c" : "") },
									h,
								),
							),
							el("th", { scope: "col" }, "Call"),
						),
					),
					body,
				),
			),
			lines >= mostLines && el("p", { class: "more" }, "… more calls: collapse some"),
		);
		(toFocus as HTMLElement | null)?.focus();
	}

	private toggle(id: string): void {
		if (!this.open.delete(id)) this.open.add(id);
		this.draw(id);
	}
}

function path(c: Call): string {
	const names = [];
	for (let p: Call | null = c; p; p = p.parent) names.push(p.name);
	return names.join("\n");
}
