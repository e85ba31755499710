// Mouse, pen and touch on the timeline.

import { Span } from "./store";

/** What has an axis of which a part is shown. */
interface Scene {
	readonly state: Readonly<Span & { select: boolean }>;
	readonly whole: boolean;
	full(): number;
	zoom(x0: number, x1: number): void;
	set(part: Partial<Span>): void;
}

interface Point {
	x: number;
	y: number;
}

interface Target {
	width: () => number;
	hover: (p: Point | null) => void;
	click: (p: Point, shift: boolean) => void;
	zoomY: (y: number, factor: number) => void;
	panY: (dy: number) => void;
	/** A part of the axis is being selected; done says that the pointer was lifted. */
	range: (x0: number, x1: number, done: boolean) => void;
	/** The wheel turned, and was left to the page. */
	passed: () => void;
}

/** The wheel zooms around the pointer, with shift the height: with Ctrl or Cmd, and after a click into the picture;
 * before that, and where there is nothing to zoom out of, it scrolls the page. A drag moves the picture, with shift
 * or while ranges are selected it selects one; two fingers zoom and move. */
export function drag(box: HTMLElement, view: Scene, t: Target): void {
	const fingers = new Map<number, Point>();
	let moved = 0,
		clicked = false, // since the picture was last left for another part of the page
		start: number | null = null; // where on the axis a range begins that is being selected
	const at = (e: MouseEvent): Point => {
		const r = box.getBoundingClientRect();
		return { x: e.clientX - r.left - box.clientLeft, y: e.clientY - r.top - box.clientTop };
	};
	const scale = () => (view.state.x1 - view.state.x0) / t.width(),
		place = (p: Point) => view.state.x0 + Math.min(Math.max(p.x, 0), t.width()) * scale();

	const select = (from: number, p: Point, done: boolean) => {
		const to = place(p);
		t.range(Math.min(from, to), Math.max(from, to), done);
	};

	box.addEventListener("blur", () => (clicked = false));
	box.addEventListener(
		"wheel",
		e => {
			const meant = e.ctrlKey || e.metaKey;
			if (!meant && !clicked) return t.passed();
			const p = at(e);
			const factor = Math.exp(
				(Math.sign(e.deltaY || e.deltaX) * Math.min(Math.abs(e.deltaY || e.deltaX), 120)) / 500,
			);
			if (e.shiftKey) {
				e.preventDefault();
				t.zoomY(p.y, factor);
				return;
			}
			const { x0, x1 } = view.state;
			if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
				e.preventDefault();
				view.zoom(x0 + e.deltaX * scale(), x1 + e.deltaX * scale());
				return;
			}
			if (factor > 1 && view.whole && !meant) return;
			e.preventDefault();
			const x = x0 + p.x * scale();
			view.zoom(x - (x - x0) * factor, x + (x1 - x) * factor);
		},
		{ passive: false },
	);

	box.addEventListener("pointerdown", e => {
		if (e.button !== 0) return;
		clicked = true;
		box.setPointerCapture(e.pointerId);
		fingers.set(e.pointerId, at(e));
		moved = fingers.size > 1 ? 99 : 0;
		start = fingers.size === 1 && (e.shiftKey || view.state.select) ? place(at(e)) : null;
	});
	box.addEventListener("pointermove", e => {
		const p = at(e),
			before = fingers.get(e.pointerId);
		t.hover(e.pointerType === "touch" && moved > 4 ? null : p);
		if (!before) return;
		const { x0, x1 } = view.state;
		if (fingers.size === 2) {
			const other = [...fingers].find(([id]) => id !== e.pointerId)![1];
			const factor = Math.max(Math.abs(before.x - other.x), 10) / Math.max(Math.abs(p.x - other.x), 10);
			const fixed = x0 + other.x * scale();
			view.zoom(fixed - (fixed - x0) * factor, fixed + (x1 - fixed) * factor);
		} else {
			moved += Math.abs(p.x - before.x) + Math.abs(p.y - before.y);
			if (moved > 4 && start !== null) select(start, p, false);
			else if (moved > 4) {
				const dx = (before.x - p.x) * scale(),
					full = view.full();
				const shift = Math.min(Math.max(dx, -x0), full - x1);
				view.set({ x0: x0 + shift, x1: x1 + shift });
				t.panY(p.y - before.y);
			}
		}
		fingers.set(e.pointerId, p);
	});
	const up = (e: PointerEvent) => {
		if (!fingers.delete(e.pointerId) || e.type !== "pointerup") return;
		if (moved <= 4) t.click(at(e), e.shiftKey);
		else if (start !== null) select(start, at(e), true);
	};
	box.addEventListener("pointerup", up);
	box.addEventListener("pointercancel", up);
	box.addEventListener("pointerleave", () => t.hover(null));
	box.addEventListener("dblclick", e => {
		const x = view.state.x0 + at(e).x * scale(),
			{ x0, x1 } = view.state;
		view.zoom(x - (x - x0) / 3, x + (x1 - x) / 3);
	});
}
