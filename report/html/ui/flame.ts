// The icicle: calls as boxes as wide as the memory they hold, the outermost on top.

import { asText, Call, calls } from "./calls";
import { css } from "./colors";
import { el, fill, pen, swatch } from "./dom";
import * as format from "./format";
import { Panel } from "./panel";
import { State, View } from "./view";

const rowHeight = 20,
	mostRows = 60;

interface Box {
	x: number;
	w: number;
	depth: number;
	call: Call;
}

export class Flame implements Panel {
	readonly name = "Flame graph";
	readonly needs: (keyof State)[] = ["cursor", "search", "regex", "internals", "pick", "only"];
	readonly element = el("div", { class: "panel flame" });
	private readonly canvas = el("canvas", {
		tabindex: 0,
		role: "img",
		"aria-label": "flame graph; arrow keys move, Enter focuses, Escape shows all",
	});
	private readonly path = el("nav", { class: "crumbs", "aria-label": "Focus" });
	private readonly about = el("p", { class: "about", role: "status" });
	private readonly empty = el("p", { class: "empty", hidden: true }, "Nothing is live at the cursor.");
	private boxes: Box[] = [];
	private root!: Call;
	private focus: Call | null = null;
	private chosen: Call | null = null;
	private names: string[] = []; // of the focus, kept while the cursor moves

	constructor(readonly view: View) {
		this.element.append(this.path, this.empty, this.canvas, this.about);
		this.canvas.addEventListener("pointermove", e => this.choose(this.at(e)));
		this.canvas.addEventListener("pointerleave", () => this.choose(null));
		this.canvas.addEventListener("click", e => this.zoom(this.at(e)));
		this.canvas.addEventListener("keydown", e => this.key(e));
	}

	render(): void {
		this.root = calls(this.view, this.view.live());
		this.focus = this.root;
		for (const name of this.names) {
			const next: Call | undefined = this.focus.children.find(c => c.name === name);
			if (!next) break;
			this.focus = next;
		}
		this.chosen = null;
		this.draw();
	}

	text(): string {
		return asText(this.root, (c, depth) => "  ".repeat(depth) + `${format.bytes(c.bytes)}  ${c.name}`);
	}

	private draw(): void {
		const W = this.element.clientWidth,
			top = this.focus!;
		this.boxes = [];
		const dense = (c: Call, x: number, w: number, depth: number) => {
			this.boxes.push({ x, w, depth, call: c });
			if (depth + 1 >= mostRows) return;
			for (const child of c.children) {
				const cw = (child.bytes / top.bytes) * W;
				if (cw >= 0.5) dense(child, x, cw, depth + 1);
				x += cw;
			}
		};
		this.empty.hidden = top.bytes > 0;
		this.canvas.hidden = top.bytes <= 0;
		if (top.bytes > 0 && W > 0) dense(top, 0, W, 0);
		const rows = this.boxes.reduce((a, b) => Math.max(a, b.depth + 1), 1);
		const g = pen(this.canvas, W, rows * rowHeight);
		const fills = [css("f0"), css("f0"), css("f0"), css("f1"), css("f2"), css("f3")],
			ink = css("ink"),
			card = css("card"),
			strong = css("sel");
		for (const b of this.boxes) {
			const y = b.depth * rowHeight;
			g.fillStyle = b.call === this.chosen ? strong : b.depth === 0 ? css("sunk") : fills[b.call.origin];
			g.fillRect(b.x, y, Math.max(b.w - 1, 0.5), rowHeight - 1);
			if (b.w < 30) continue;
			g.fillStyle = b.call === this.chosen ? card : ink;
			g.save();
			g.beginPath();
			g.rect(b.x, y, b.w - 4, rowHeight);
			g.clip();
			g.fillText(
				b.depth === 0 ? `${b.call.name}, ${format.bytes(b.call.bytes)}` : label(b.call, b.w),
				b.x + 4,
				y + 14,
			);
			g.restore();
		}
		this.crumbs();
		this.say();
	}

	private crumbs(): void {
		const way: Call[] = [];
		for (let c = this.focus; c; c = c.parent) way.unshift(c);
		fill(
			this.path,
			...(way.length < 2
				? []
				: way.map((c, i) =>
						el(
							"button",
							{
								type: "button",
								class: "link",
								click: () => this.zoom(c),
								disabled: i === way.length - 1,
							},
							c.name,
						),
					)),
		);
	}

	private say(): void {
		const c = this.chosen;
		if (!c) {
			const key = (name: string, text: string) =>
				el("span", { class: "nowrap" }, swatch(`var(--${name})`), " " + text);
			fill(
				this.about,
				"Click or press Enter to focus on a call. ",
				key("f3", "your code"),
				", ",
				key("f2", "other packages"),
				", ",
				key("f1", "PyTorch and the standard library"),
				", ",
				key("f0", "interpreter and C++"),
				".",
			);
			return;
		}
		this.about.textContent =
			`${c.name}: ${format.bytes(c.bytes)}, ${format.percent(c.bytes, this.root.bytes)} ` +
			`of what is live, ${format.plural(c.count, "block")}; self ${format.bytes(c.self)}`;
	}

	private at(e: MouseEvent): Call | null {
		const y = Math.floor(e.offsetY / rowHeight);
		return this.boxes.find(b => b.depth === y && e.offsetX >= b.x && e.offsetX < b.x + b.w)?.call ?? null;
	}

	private choose(c: Call | null): void {
		if (c === this.chosen) return;
		this.chosen = c;
		this.draw();
	}

	private zoom(c: Call | null): void {
		if (!c) return;
		this.focus = c;
		this.names = [];
		for (let p: Call | null = c; p && p.parent; p = p.parent) this.names.unshift(p.name);
		this.draw();
	}

	private key(e: KeyboardEvent): void {
		const c = this.chosen ?? this.focus!,
			siblings = c.parent?.children ?? [c],
			i = siblings.indexOf(c);
		const to: Record<string, Call | null | undefined> = {
			ArrowDown: c.children[0],
			ArrowUp: c === this.focus ? c : c.parent,
			ArrowLeft: siblings[i - 1],
			ArrowRight: siblings[i + 1],
		};
		if (e.key in to) this.choose(to[e.key] ?? c);
		else if (e.key === "Enter") this.zoom(c);
		else if (e.key === "Escape") this.zoom(this.root);
		else return;
		e.preventDefault();
	}
}

/** The function first: a box may be narrow. */
function label(c: Call, w: number): string {
	const [file, ...name] = c.name.split(" ");
	if (!name.length || !/:\d+$/.test(file) || w > 300) return c.name;
	return name.join(" ") + " " + file.slice(file.lastIndexOf("/") + 1);
}
