// The live memory by call path.

import { Origin } from "./model";
import { Cell } from "./save";
import { View } from "./view";

/** A call with what it and the calls below it hold; in a tree of callers, those below are who called it. */
export interface Call {
	name: string;
	frame: number; // of the tables, -1 for none
	origin: Origin;
	bytes: number;
	self: number;
	count: number;
	parent: Call | null;
	children: Call[]; // most bytes first
}

/** The nodes of a stack in the order of a tree, outermost first; null for a stack that is not in it. */
type Way = (outermostFirst: number[]) => number[] | null;

/** Lays the rows out by call path, outermost frame first. */
export function calls(view: View, rows: number[]): Call {
	return whole(view, rows, way => way);
}

/** Lays the rows out by call path, innermost frame first. */
export function callers(view: View, rows: number[]): Call {
	return whole(view, rows, way => way.reverse());
}

function whole(view: View, rows: number[], order: Way): Call {
	const root = lay(view, rows, "all", order);
	addRest(view, root);
	sort(root);
	return root;
}

/** What a function called, and who called it, in the stacks that it is in. Of a recursion the outermost call counts. */
export function around(view: View, rows: number[], name: string): { callees: Call; callers: Call } {
	const t = view.dev.tables,
		at = (way: number[]) => way.findIndex(n => t.frame(n) === name),
		some = (part: (way: number[], at: number) => number[]) =>
			lay(view, rows, name, way => (at(way) < 0 ? null : part(way, at(way)))),
		callees = some((way, i) => way.slice(i + 1)),
		callers = some((way, i) => way.slice(0, i).reverse());
	sort(callees);
	sort(callers);
	return { callees, callers };
}

function lay(view: View, rows: number[], name: string, order: Way): Call {
	const d = view.dev,
		t = d.tables,
		internals = view.state.internals;
	const bytes = new Map<number, { bytes: number; count: number }>();
	for (const row of rows) {
		const s = d.stackOf(row),
			sum = bytes.get(s) ?? { bytes: 0, count: 0 };
		sum.bytes += d.lives.size[row];
		sum.count++;
		bytes.set(s, sum);
	}
	const root = call(name, -1, Origin.User, null),
		index = new Map<Call, Map<string, Call>>();
	for (const [stack, sum] of bytes) {
		const frames = t.visible(stack, internals).reverse(),
			path = order([...frames]);
		if (!path) continue;
		let at = root;
		const enter = (name: string, frame: number, origin: Origin) => {
			let below = index.get(at);
			if (!below) index.set(at, (below = new Map()));
			let next = below.get(name);
			if (!next) {
				below.set(name, (next = call(name, frame, origin, at)));
				at.children.push(next);
			}
			at = next;
			at.bytes += sum.bytes;
			at.count += sum.count;
		};
		root.bytes += sum.bytes;
		root.count += sum.count;
		for (const n of path) enter(t.frame(n), t.nodeFrame[n], t.frameOrigin[t.nodeFrame[n]]);
		if (!frames.length) enter(t.site(stack), -1, Origin.Plumbing);
		at.self += sum.bytes;
	}
	return root;
}

function addRest(view: View, root: Call): void {
	const rest = view.choosy ? null : view.dev.restAt(view.state.cursor);
	const sum = rest ? rest.reduce((a, b) => a + b, 0) : 0;
	if (sum <= 0) return;
	const c = call("(not in this page, see above)", -1, Origin.Plumbing, root);
	c.bytes = c.self = sum;
	root.bytes += sum;
	root.children.push(c);
}

function call(name: string, frame: number, origin: Origin, parent: Call | null): Call {
	return { name, frame, origin, bytes: 0, self: 0, count: 0, parent, children: [] };
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
