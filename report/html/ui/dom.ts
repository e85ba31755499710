// Small helpers to build elements. Texts go in as text, never as markup.

type Attributes = Record<string, string | number | boolean | ((e: never) => void) | undefined>;
type Child = Node | string | null | undefined | false;

/** Makes an element. An attribute that is a function listens to the event of its name. */
export function el<K extends keyof HTMLElementTagNameMap>(
	tag: K,
	attributes: Attributes = {},
	...children: Child[]
): HTMLElementTagNameMap[K] {
	const e = document.createElement(tag);
	for (const [name, v] of Object.entries(attributes)) {
		if (typeof v === "function") e.addEventListener(name, v as EventListener);
		else if (v === true) e.setAttribute(name, "");
		else if (v !== undefined && v !== false) e.setAttribute(name, String(v));
	}
	fill(e, ...children);
	return e;
}

/** Replaces what an element holds. */
export function fill(e: Element, ...children: Child[]): void {
	e.replaceChildren(...children.filter((c): c is Node | string => !!c));
}

let ids = 0;

/** A name that no other element has. */
export function unique(prefix: string): string {
	return `${prefix}-${++ids}`;
}

/** A colored square that stands for a group. */
export function swatch(color: string): HTMLElement {
	const e = el("i", { class: "swatch" });
	e.style.background = color;
	return e;
}

/** A labeled choice. */
export function choice(
	label: string,
	options: [string, string][],
	value: string,
	change: (v: string) => void,
): HTMLLabelElement {
	const select = el(
		"select",
		{ change: () => change(select.value) },
		...options.map(([v, text]) => el("option", { value: v, selected: v === value }, text)),
	);
	return el("label", { class: "choice" }, el("span", {}, label), select);
}

/** Sets a canvas to its size on the screen and gives its context in CSS pixels. */
export function pen(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
	const ratio = pixelRatio();
	canvas.width = Math.max(1, Math.round(width * ratio));
	canvas.height = Math.max(1, Math.round(height * ratio));
	canvas.style.width = width + "px";
	canvas.style.height = height + "px";
	const g = canvas.getContext("2d")!;
	g.setTransform(ratio, 0, 0, ratio, 0, 0);
	g.font = "12px system-ui, sans-serif";
	return g;
}

/** Calls f when the width of an element has changed, in a frame of its own. */
export function resized(e: Element, f: () => void): void {
	let width = -1;
	new ResizeObserver(() => {
		if (e.clientWidth === width) return;
		width = e.clientWidth;
		requestAnimationFrame(f);
	}).observe(e);
}

/** Calls f when a picture must be drawn anew: in another width, or in the colors of night or day. */
export function redrawn(e: Element, f: () => void): void {
	resized(e, f);
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", f);
}

/** More than 2 is not seen, and costs its square. */
export function pixelRatio(): number {
	return Math.min(window.devicePixelRatio || 1, 2);
}

/** A button that copies a text, and says so. */
export function copier(label: string, text: () => string): HTMLButtonElement {
	const button = el(
		"button",
		{
			type: "button",
			click: async () => {
				await copy(text());
				button.textContent = "Copied";
				setTimeout(() => (button.textContent = label), 1200);
			},
		},
		label,
	);
	return button;
}

/** Copies a text, also where a page from disk may not use the clipboard. */
async function copy(text: string): Promise<void> {
	try {
		await navigator.clipboard.writeText(text);
	} catch {
		const area = el("textarea", { class: "offscreen" });
		area.value = text;
		document.body.append(area);
		area.select();
		document.execCommand("copy");
		area.remove();
	}
}
