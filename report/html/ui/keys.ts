// What the keys do while the timeline has the focus.

import { View } from "./view";

export const help: [string, string][] = [
	["← →", "move the cursor by a column; with Shift by ten; with Alt by one event"],
	["W S + −", "zoom in and out around the cursor"],
	["A D", "pan left and right"],
	["Home End", "first and last event"],
	["P", "the peak"],
	["O", "the next out-of-memory event"],
	["N B", "next and previous step"],
	["L Enter", "pin the largest allocation live at the cursor"],
	["M", "set an end of the range to compare"],
	["0", "show all"],
	["Escape", "unpin, and clear the range, the highlight and the choice of colors"],
	["/", "search"],
	["?", "this sheet"],
];

export function keys(e: KeyboardEvent, view: View): void {
	if (e.ctrlKey || e.metaKey) return;
	const { state, dev } = view,
		span = state.x1 - state.x0;
	const around = (factor: number) => {
		const x = Math.min(Math.max(view.at(state.cursor), state.x0), state.x1);
		view.zoom(x - (x - state.x0) * factor, x + (state.x1 - x) * factor);
	};
	const move = (dir: number) => {
		if (e.altKey) return view.go(state.cursor + dir);
		const next = view.eventAt(view.at(state.cursor) + (dir * span * (e.shiftKey ? 10 : 1)) / 200);
		view.go(dir > 0 ? Math.max(next, state.cursor + 1) : Math.min(next, state.cursor - 1));
	};
	const actions: Record<string, () => void> = {
		ArrowLeft: () => move(-1),
		ArrowRight: () => move(1),
		"+": () => around(0.7),
		"=": () => around(0.7),
		"-": () => around(1 / 0.7),
		w: () => around(0.7),
		s: () => around(1 / 0.7),
		a: () => view.zoom(state.x0 - span / 5, state.x1 - span / 5),
		d: () => view.zoom(state.x0 + span / 5, state.x1 + span / 5),
		Home: () => view.go(0),
		End: () => view.go(dev.events - 1),
		p: () => jump(view, "peak"),
		o: () => jump(view, "oom"),
		n: () => step(view, 1),
		b: () => step(view, -1),
		l: () => largest(view),
		Enter: () => largest(view),
		m: () =>
			state.markA > -2 && state.markB === -2
				? view.set({ markB: state.cursor })
				: view.set({ markA: state.cursor, markB: -2 }),
		"0": () => view.set({ x0: 0, x1: view.full(), lo: 0, hi: 0 }),
		Escape: () => view.set({ pinned: -1, pick: null, only: "", markA: -2, markB: -2 }),
	};
	const act = actions[e.key.length === 1 ? e.key.toLowerCase() : e.key];
	if (!act) return;
	e.preventDefault();
	act();
}

/** Goes to the next mark of a kind, from the last one to the first. */
export function jump(view: View, kind: string): void {
	const all = view.dev.marks.filter(m => m.kind === kind);
	if (!all.length) return;
	view.go((all.find(m => m.event > view.state.cursor) ?? all[0]).event);
}

/** Goes to the end of another step. */
export function step(view: View, dir: number): void {
	const s = view.dev.steps;
	let i = 0;
	while (i < s.first.length && s.last[i] < view.state.cursor) i++;
	if (i < s.first.length && s.last[i] > view.state.cursor && dir < 0) i--;
	else if (i < s.first.length && s.last[i] === view.state.cursor) i += dir;
	if (i >= 0 && i < s.first.length) view.go(s.last[i]);
}

/** Goes to the end of a step by its number. */
export function stepTo(view: View, n: number): void {
	const last = view.dev.steps.last;
	if (last.length) view.go(last[Math.min(Math.max(n, 0), last.length - 1)]);
}

/** Pins the largest allocation that is live at the cursor. */
export function largest(view: View): void {
	const { size } = view.dev.lives;
	let best = -1;
	for (const row of view.live()) if (best < 0 || size[row] > size[best]) best = row;
	view.set({ pinned: best });
}
