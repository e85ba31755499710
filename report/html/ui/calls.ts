// The live memory by call path.

import { Origin } from "./model";
import { Cell } from "./save";
import { View } from "./view";

/** A call with what it and the calls below it hold; in a tree of callers, those below are who called it. */
export interface Call extends Frame {
	bytes: number;
	self: number;
	count: number;
	/** Of a difference: bytes on its sides, of which bytes changed. */
	a: number;
	b: number;
	chosen: boolean; // some of it is of what was chosen
	parent: Call | null;
	children: Call[]; // most bytes first
}

interface Frame {
	name: string;
	frame: number; // of the tables, -1 for none
	origin: Origin;
}

/** What one stack holds. */
export interface Leaf extends Pick<Call, "bytes" | "count" | "a" | "b" | "chosen"> {
	way: Frame[]; // outermost first
}

/** What the rows hold, by stack. */
export function leaves(view: View, rows: number[]): Leaf[] {
	const d = view.dev,
		t = d.tables,
		all = new Map<number, Leaf>();
	for (const row of rows) {
		const s = d.stackOf(row);
		let leaf = all.get(s);
		if (!leaf) {
			const way = t.visible(s, view.state.internals).map(n => {
				const frame = t.nodeFrame[n];
				return { name: t.frame(n), frame, origin: t.frameOrigin[frame] };
			});
			if (!way.length) way.push({ name: t.site(s), frame: -1, origin: Origin.Plumbing });
			all.set(s, (leaf = { way: way.reverse(), bytes: 0, count: 0, a: 0, b: 0, chosen: true }));
		}
		leaf.bytes += d.lives.size[row];
		leaf.count++;
	}
	return [...all.values()];
}

/** Lays what stacks hold out by call path, outermost frame first. */
export function calls(all: Leaf[]): Call {
	return lay(all, "all", way => way);
}

/** Lays what stacks hold out by call path, innermost frame first. */
export function callers(all: Leaf[]): Call {
	return lay(all, "all", way => way.toReversed());
}

/** What a function called, and who called it, in the stacks that it is in. Of a recursion the outermost call counts. */
export function around(all: Leaf[], name: string): { callees: Call; callers: Call } {
	const at = (way: Frame[]) => way.findIndex(f => f.frame >= 0 && f.name === name),
		some = (part: (way: Frame[], at: number) => Frame[]) =>
			lay(all, name, way => (at(way) < 0 ? null : part(way, at(way))));
	return { callees: some((way, i) => way.slice(i + 1)), callers: some((way, i) => way.slice(0, i).reverse()) };
}

function lay(all: Leaf[], name: string, order: (way: Frame[]) => Frame[] | null): Call {
	const root = call({ name, frame: -1, origin: Origin.User }, null),
		index = new Map<Call, Map<string, Call>>();
	for (const leaf of all) {
		const path = order(leaf.way);
		if (!path) continue;
		let at = root;
		add(at, leaf);
		for (const frame of path) {
			let below = index.get(at);
			if (!below) index.set(at, (below = new Map()));
			let next = below.get(frame.name);
			if (!next) {
				below.set(frame.name, (next = call(frame, at)));
				at.children.push(next);
			}
			at = next;
			add(at, leaf);
		}
		at.self += leaf.bytes;
	}
	sort(root);
	return root;
}

function add(to: Call, leaf: Leaf): void {
	to.bytes += leaf.bytes;
	to.count += leaf.count;
	to.a += leaf.a;
	to.b += leaf.b;
	to.chosen ||= leaf.chosen;
}

/** What is live at the cursor and not in the page. */
export function addRest(view: View, root: Call): void {
	const rest = view.choosy ? null : view.dev.restAt(view.state.cursor);
	const sum = rest ? rest.reduce((a, b) => a + b, 0) : 0;
	if (sum <= 0) return;
	const c = call({ name: "(not in this page, see above)", frame: -1, origin: Origin.Plumbing }, root);
	c.bytes = c.self = sum;
	root.bytes += sum;
	root.children.push(c);
	sort(root);
}

function call(frame: Frame, parent: Call | null): Call {
	return { ...frame, bytes: 0, self: 0, count: 0, a: 0, b: 0, chosen: false, parent, children: [] };
}

function sort(root: Call): void {
	const todo = [root];
	for (let c = todo.pop(); c; c = todo.pop()) {
		c.children.sort((a, b) => b.bytes - a.bytes || (a.name < b.name ? -1 : 1));
		todo.push(...c.children);
	}
}

/** The tree as text, calls of less than a thousandth left out. */
export function asText(root: Call, line: (c: Call, depth: number) => string): string {
	const out: string[] = [],
		todo: [Call, number][] = [[root, 0]];
	for (let it = todo.pop(); it; it = todo.pop()) {
		const [c, depth] = it;
		out.push(line(c, depth));
		for (let i = c.children.length - 1; i >= 0; i--)
			if (c.children[i].bytes * 1000 >= root.bytes) todo.push([c.children[i], depth + 1]);
	}
	return out.join("\n") + "\n";
}

/** The tree as a table: a line for each call, below the one that it is a part of. */
export function asTable(root: Call): Cell[][] {
	const out: Cell[][] = [["depth", "bytes", "blocks", "self (bytes)", "call"]],
		todo: [Call, number][] = [[root, 0]];
	for (let it = todo.pop(); it; it = todo.pop()) {
		const [c, depth] = it;
		out.push([depth, c.bytes, c.count, c.self, c.name]);
		for (let i = c.children.length - 1; i >= 0; i--) todo.push([c.children[i], depth + 1]);
	}
	return out;
}
