// Pictures that can be saved: drawn once more by the same code, on a canvas or as SVG.

import { css } from "./colors";
import { Frame } from "./raster";

/** What drawing code may use: the part of a canvas's context that Svg has, too. */
export type Pen = Pick<
	CanvasRenderingContext2D,
	| "fillStyle"
	| "strokeStyle"
	| "globalAlpha"
	| "lineWidth"
	| "font"
	| "textAlign"
	| "fillRect"
	| "strokeRect"
	| "fillText"
	| "measureText"
	| "beginPath"
	| "moveTo"
	| "lineTo"
	| "closePath"
	| "rect"
	| "fill"
	| "stroke"
	| "clip"
	| "translate"
	| "save"
	| "restore"
	| "setLineDash"
>;

export interface Picture {
	width: number;
	height: number;
	/** Draws it with so many pixels for one of CSS. */
	draw: (g: Pen, ratio: number) => void;
}

const margin = 10;

const font = "12px system-ui, sans-serif";

/** A picture with a margin, on its background. */
function framed(p: Picture): Picture {
	const width = p.width + 2 * margin,
		height = p.height + 2 * margin;
	return {
		width,
		height,
		draw: (g, ratio) => {
			g.font = font;
			g.fillStyle = css("card");
			g.fillRect(0, 0, width, height);
			g.save();
			g.translate(margin, margin);
			p.draw(g, ratio);
			g.restore();
		},
	};
}

export function png(bare: Picture): Promise<Blob> {
	const p = framed(bare),
		canvas = document.createElement("canvas"),
		ratio = 2;
	canvas.width = Math.ceil(p.width * ratio);
	canvas.height = Math.ceil(p.height * ratio);
	const g = canvas.getContext("2d")!;
	g.scale(ratio, ratio);
	p.draw(g, ratio);
	return new Promise((done, fail) =>
		canvas.toBlob(b => (b ? done(b) : fail(new Error("the picture is too large"))), "image/png"),
	);
}

export function svg(bare: Picture): Blob {
	const p = framed(bare),
		g = new Svg();
	p.draw(g, 1);
	return new Blob([g.document(p.width, p.height)], { type: "image/svg+xml" });
}

/** Draws the pixels of a frame as rectangles, each as large as its color is. */
export function drawFrame(g: Pen, f: Frame, ratio: number): void {
	interface Run {
		x: number;
		end: number;
		y: number;
		color: number;
	}
	const { width: W, height: H, pixels } = f,
		byColor = new Map<number, [number, number, number, number][]>();
	const close = (r: Run, y: number) => {
		let all = byColor.get(r.color);
		if (!all) byColor.set(r.color, (all = []));
		all.push([r.x, r.y, r.end - r.x, y - r.y]);
	};
	let above: Run[] = [];
	for (let y = 0; y < H; y++) {
		const row: Run[] = [];
		let k = 0;
		for (let x = 0; x < W;) {
			const from = x,
				color = pixels[y * W + x];
			while (x < W && pixels[y * W + x] === color) x++;
			while (k < above.length && above[k].x < from) close(above[k++], y);
			const same = above[k]?.x === from && above[k].end === x && above[k].color === color;
			row.push(same ? above[k++] : { x: from, end: x, y, color });
		}
		while (k < above.length) close(above[k++], y);
		above = row;
	}
	for (const r of above) close(r, H);
	for (const [color, all] of byColor) {
		g.fillStyle = "#" + [0, 8, 16].map(s => ((color >>> s) & 255).toString(16).padStart(2, "0")).join("");
		g.beginPath();
		for (const [x, y, w, h] of all) g.rect(x / ratio, y / ratio, w / ratio, h / ratio);
		g.fill();
	}
}

/** Colors and what they stand for, in lines as wide as a picture; one without a color is a text alone. */
export function legend(items: { color: string; text: string }[], width: number): Picture {
	const ruler = document.createElement("canvas").getContext("2d")!,
		spots: [number, number][] = [];
	ruler.font = font;
	let x = 0,
		y = 0;
	for (const { text } of items) {
		const w = 18 + ruler.measureText(text).width;
		if (x > 0 && x + w > width) [x, y] = [0, y + 18];
		spots.push([x, y]);
		x += w + 16;
	}
	return {
		width,
		height: items.length ? y + 24 : 0,
		draw: g =>
			items.forEach(({ color, text }, i) => {
				const [x, y] = spots[i];
				if (color) {
					g.fillStyle = color;
					g.fillRect(x, y + 3, 12, 12);
				}
				g.fillStyle = css("ink");
				g.fillText(text, x + (color ? 18 : 0), y + 13);
			}),
	};
}

const escapes: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** Text and attributes as XML has them; characters that it has not are left out. */
function xml(s: string): string {
	return s.replace(/[&<>"]/g, c => escapes[c]).replace(/[^\t\n\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "");
}

const short = (v: number) => String(Math.round(v * 100) / 100);

interface Style {
	fillStyle: string | CanvasGradient | CanvasPattern;
	strokeStyle: string | CanvasGradient | CanvasPattern;
	globalAlpha: number;
	lineWidth: number;
	font: string;
	textAlign: CanvasTextAlign;
	dash: number[];
}

/** Writes what is drawn as SVG. */
class Svg implements Pen, Style {
	fillStyle: Style["fillStyle"] = "#000";
	strokeStyle: Style["strokeStyle"] = "#000";
	globalAlpha = 1;
	lineWidth = 1;
	font = font;
	textAlign: CanvasTextAlign = "left";
	dash: number[] = [];
	private readonly out: string[] = [];
	private path = "";
	private clips = 0;
	private open = 0; // groups since the last save
	private readonly saved: (Style & { open: number })[] = [];
	private readonly ruler = document.createElement("canvas").getContext("2d")!;

	document(width: number, height: number): string {
		return (
			`<svg xmlns="http://www.w3.org/2000/svg" width="${short(width)}" height="${short(height)}" ` +
			`viewBox="0 0 ${short(width)} ${short(height)}">\n${this.out.join("\n")}\n</svg>\n`
		);
	}

	private put(tag: string, attributes: Record<string, string>, text = ""): void {
		const all = Object.entries(attributes).map(([k, v]) => ` ${k}="${xml(v)}"`);
		this.out.push(`<${tag}${all.join("")}${text ? `>${xml(text)}</${tag}>` : "/>"}`);
	}

	private filled(): Record<string, string> {
		const out: Record<string, string> = { fill: String(this.fillStyle) };
		if (this.globalAlpha < 1) out["fill-opacity"] = short(this.globalAlpha);
		return out;
	}

	private stroked(): Record<string, string> {
		const out: Record<string, string> = {
			fill: "none",
			stroke: String(this.strokeStyle),
			"stroke-width": short(this.lineWidth),
		};
		if (this.dash.length) out["stroke-dasharray"] = this.dash.join(" ");
		if (this.globalAlpha < 1) out["stroke-opacity"] = short(this.globalAlpha);
		return out;
	}

	fillRect(x: number, y: number, w: number, h: number): void {
		this.put("rect", { x: short(x), y: short(y), width: short(w), height: short(h), ...this.filled() });
	}

	strokeRect(x: number, y: number, w: number, h: number): void {
		this.put("rect", { x: short(x), y: short(y), width: short(w), height: short(h), ...this.stroked() });
	}

	fillText(text: string, x: number, y: number): void {
		const [, weight, size, family] = /^(bold )?([\d.]+px) (.*)$/.exec(this.font)!,
			anchor = { right: "end", center: "middle" }[this.textAlign as string];
		this.put(
			"text",
			{
				x: short(x),
				y: short(y),
				"font-family": family,
				"font-size": size,
				...(weight && { "font-weight": "bold" }),
				...(anchor && { "text-anchor": anchor }),
				...this.filled(),
			},
			text,
		);
	}

	measureText(text: string): TextMetrics {
		this.ruler.font = this.font;
		return this.ruler.measureText(text);
	}

	beginPath(): void {
		this.path = "";
	}

	moveTo(x: number, y: number): void {
		this.path += `M${short(x)} ${short(y)}`;
	}

	lineTo(x: number, y: number): void {
		this.path += `${this.path ? "L" : "M"}${short(x)} ${short(y)}`;
	}

	closePath(): void {
		this.path += "Z";
	}

	rect(x: number, y: number, w: number, h: number): void {
		this.path += `M${short(x)} ${short(y)}h${short(w)}v${short(h)}h${short(-w)}z`;
	}

	fill(): void {
		this.put("path", { d: this.path, ...this.filled() });
	}

	stroke(): void {
		this.put("path", { d: this.path, ...this.stroked() });
	}

	clip(): void {
		const id = `c${++this.clips}`;
		this.out.push(`<clipPath id="${id}"><path d="${this.path}"/></clipPath>`, `<g clip-path="url(#${id})">`);
		this.open++;
	}

	translate(x: number, y: number): void {
		this.out.push(`<g transform="translate(${short(x)} ${short(y)})">`);
		this.open++;
	}

	setLineDash(dash: number[]): void {
		this.dash = dash;
	}

	save(): void {
		const { fillStyle, strokeStyle, globalAlpha, lineWidth, font, textAlign, dash, open } = this;
		this.saved.push({ fillStyle, strokeStyle, globalAlpha, lineWidth, font, textAlign, dash, open });
		this.open = 0;
	}

	restore(): void {
		const before = this.saved.pop();
		if (!before) return;
		for (; this.open > 0; this.open--) this.out.push("</g>");
		Object.assign(this, before);
	}
}
