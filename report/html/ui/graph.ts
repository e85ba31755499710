// A flame graph: calls as boxes as wide as what they hold. The outermost call is on top; inverted, the innermost.
// Around a function, those who called it are above it and those that it called below.

import { around, asTable, asText, Call, callers, calls, Leaf } from "./calls";
import { css } from "./colors";
import { el, fill, pen } from "./dom";
import { Pen, Picture } from "./picture";
import { Cell } from "./save";

export const rowHeight = 20;
const mostRows = 60;

/** What a flame graph shows, and how. */
export interface Focus {
	inverted: boolean;
	/** The function that it is drawn around, and the path to the call that has the focus, in lines. */
	around: string;
	focus: string;
	search: string;
}

interface Looked {
	readonly state: Readonly<Focus>;
	set(part: Partial<Focus>): void;
	listen(f: () => void): void;
}

export interface Box {
	x: number;
	w: number;
	row: number;
	call: Call;
}

export abstract class FlameGraph<V extends Looked> {
	readonly name = "Flame graph";
	readonly element = el("div", { class: "panel flame" });
	private readonly canvas = el("canvas", {
		tabindex: 0,
		role: "img",
		"aria-label":
			"flame graph; arrow keys move, Enter focuses, I inverts, C shows callers and callees, Escape shows all",
	});
	private readonly path = el("nav", { class: "crumbs", "aria-label": "Focus" });
	private readonly about = el("p", { class: "about", role: "status" });
	private readonly empty = el("p", { class: "empty", hidden: true });
	private boxes: Box[] = [];
	root!: Call;
	private above: Call | null = null; // who called the function that is looked at
	private focus!: Call;
	private chosen: Call | null = null;

	constructor(readonly view: V) {
		this.element.append(this.buttons(), this.path, this.empty, this.canvas, this.about);
		this.canvas.addEventListener("pointermove", e => this.choose(this.at(e)));
		this.canvas.addEventListener("pointerleave", () => this.choose(null));
		this.canvas.addEventListener("click", e => (e.shiftKey ? this.turn(this.at(e)) : this.zoom(this.at(e))));
		this.canvas.addEventListener("keydown", e => this.key(e));
	}

	private buttons(): HTMLElement {
		const { view } = this,
			inverted = el("button", { type: "button", click: () => this.invert() }, "Inverted"),
			both = el(
				"button",
				{
					type: "button",
					title: "Who called the function that has the focus, and what it called",
					click: () => (view.state.around ? view.set({ around: "" }) : this.turn(this.focus)),
				},
				"Callers and callees",
			);
		const update = () => {
			const { state } = view;
			inverted.setAttribute("aria-pressed", String(state.inverted && !state.around));
			both.setAttribute("aria-pressed", String(state.around !== ""));
			both.disabled = !state.around && !state.focus;
		};
		view.listen(update);
		update();
		return el("div", { class: "buttons flame-buttons" }, inverted, both);
	}

	/** What is drawn. */
	protected abstract leaves(): Leaf[];
	/** Adds to all calls what no stack has. */
	protected complete(_root: Call): void {}
	/** What a call holds, as a text. */
	protected abstract amount(c: Call): string;
	/** The color of a call, a property of the style sheet. */
	protected abstract color(c: Call): string;
	/** Draws more on the box of a call. */
	protected mark(_g: Pen, _b: Box): void {}
	/** Whether a call is not among those that are looked for. */
	protected abstract faded(c: Call): boolean;
	/** Tells of a call; self says that it may hold memory by itself. */
	protected abstract describe(c: Call, self: boolean): string;
	/** Tells of what is looked for, or how to use the graph. */
	protected abstract explain(): (Node | string)[];
	/** Says that there is nothing to draw. */
	protected abstract nothing(): string;

	render(): void {
		const { state } = this.view,
			leaves = this.leaves();
		this.above = null;
		if (state.around) {
			const both = around(leaves, state.around);
			this.root = both.callees;
			this.above = both.callers;
		} else {
			this.root = (state.inverted ? callers : calls)(leaves);
			this.complete(this.root);
		}
		this.focus = this.root;
		for (const name of state.around || !state.focus ? [] : state.focus.split("\n")) {
			const next: Call | undefined = this.focus.children.find(c => c.name === name);
			if (!next) break;
			this.focus = next;
		}
		this.chosen = null;
		this.draw();
	}

	text(): string {
		return asText(this.root, (c, depth) => "  ".repeat(depth) + `${this.amount(c)}  ${c.name}`);
	}

	/** Lays the boxes out for a width. */
	private lay(W: number): void {
		const top = this.focus;
		this.boxes = [];
		const dense = (c: Call, x: number, w: number, row: number, dir: number) => {
			this.boxes.push({ x, w, row, call: c });
			if (Math.abs(row) + 1 >= mostRows) return;
			for (const child of c.children) {
				const cw = (child.bytes / top.bytes) * W;
				if (cw >= 0.5) dense(child, x, cw, row + dir, dir);
				x += cw;
			}
		};
		if (top.bytes > 0 && W > 0) {
			if (this.above) {
				dense(this.above, 0, W, 0, -1);
				this.boxes.shift(); // the function itself, which is drawn with what it called
			}
			dense(top, 0, W, 0, 1);
		}
		const first = this.boxes.reduce((a, b) => Math.min(a, b.row), 0);
		for (const b of this.boxes) b.row -= first;
	}

	private get height(): number {
		return this.boxes.reduce((a, b) => Math.max(a, b.row + 1), 1) * rowHeight;
	}

	private draw(): void {
		const W = this.element.clientWidth,
			top = this.focus;
		this.lay(W);
		this.empty.textContent = this.nothing();
		this.empty.hidden = top.bytes > 0;
		this.canvas.hidden = top.bytes <= 0;
		this.paint(pen(this.canvas, W, this.height));
		this.crumbs();
		this.say();
	}

	private paint(g: Pen): void {
		const top = this.focus,
			colors = new Map<string, string>(),
			color = (name: string) => {
				if (!colors.has(name)) colors.set(name, css(name));
				return colors.get(name)!;
			};
		for (const box of this.boxes) {
			const { x, w, row, call } = box,
				y = row * rowHeight,
				chosen = call === this.chosen,
				faded = this.faded(call) && !chosen;
			g.globalAlpha = faded ? 0.3 : 1;
			g.fillStyle = color(chosen ? "sel" : call === top ? "sunk" : this.color(call));
			g.fillRect(x, y, Math.max(w - 1, 0.5), rowHeight - 1);
			if (!chosen && call !== top) this.mark(g, { ...box, row: y });
			if (w < 30) continue;
			g.globalAlpha = faded ? 0.6 : 1;
			g.fillStyle = color(chosen ? "card" : "ink");
			g.save();
			g.beginPath();
			g.rect(x, y, w - 4, rowHeight);
			g.clip();
			g.fillText(call === top ? `${call.name}, ${this.amount(call)}` : this.label(call, w), x + 4, y + 14);
			g.restore();
		}
		g.globalAlpha = 1;
	}

	picture(): Picture {
		return { width: this.element.clientWidth, height: this.height, draw: g => this.paint(g) };
	}

	csv(): Cell[][] {
		const down = asTable(this.focus),
			up = this.above ? asTable(this.above).slice(2) : [];
		return [...down, ...up.map(([depth, ...rest]): Cell[] => [-depth, ...rest])];
	}

	private crumbs(): void {
		const way: Call[] = [];
		for (let c: Call | null = this.focus; c; c = c.parent) way.unshift(c);
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
		if (c) this.about.textContent = this.describe(c, !this.view.state.inverted && !this.isCaller(c));
		else fill(this.about, ...this.explain());
	}

	private at(e: MouseEvent): Call | null {
		const row = Math.floor(e.offsetY / rowHeight);
		return this.boxes.find(b => b.row === row && e.offsetX >= b.x && e.offsetX < b.x + b.w)?.call ?? null;
	}

	private choose(c: Call | null): void {
		if (c === this.chosen) return;
		this.chosen = c;
		this.draw();
	}

	private invert(): void {
		const { inverted, around } = this.view.state;
		this.view.set({ inverted: around ? true : !inverted, around: "", focus: "" });
	}

	/** Looks at who called a function, and what it called. */
	private turn(c: Call | null): void {
		if (c && c.frame >= 0) this.view.set({ around: c.name, focus: "" });
	}

	private zoom(c: Call | null): void {
		if (!c) return;
		if (this.above) return this.turn(c);
		const names: string[] = [];
		for (let p = c; p.parent; p = p.parent) names.unshift(p.name);
		this.view.set({ focus: names.join("\n") });
	}

	private key(e: KeyboardEvent): void {
		if (e.ctrlKey || e.metaKey || e.altKey) return;
		const c = this.chosen ?? this.focus,
			siblings = c.parent?.children ?? [c],
			i = siblings.indexOf(c);
		const parent = c === this.focus ? this.above?.children[0] : c.parent === this.above ? this.root : c.parent,
			upside = this.isCaller(c);
		const to: Record<string, Call | null | undefined> = {
			ArrowDown: upside ? parent : c.children[0],
			ArrowUp: upside ? c.children[0] : parent,
			ArrowLeft: siblings[i - 1],
			ArrowRight: siblings[i + 1],
		};
		if (e.key in to) this.choose(to[e.key] ?? c);
		else if (e.key === "Enter") this.zoom(c);
		else if (e.key === "Escape") this.view.set({ focus: "", around: "" });
		else if (e.key === "i" || e.key === "I") this.invert();
		else if (e.key === "c" || e.key === "C") this.turn(c);
		else return;
		e.preventDefault();
	}

	/** Whether a call is one of those above the function that is looked at. */
	private isCaller(c: Call): boolean {
		let top = c;
		while (top.parent) top = top.parent;
		return top === this.above;
	}

	/** The function first: a box may be narrow. */
	protected label(c: Call, w: number): string {
		const [file, ...name] = c.name.split(" ");
		if (!name.length || !/:\d+$/.test(file) || w > 300) return c.name;
		return name.join(" ") + " " + file.slice(file.lastIndexOf("/") + 1);
	}
}
