// Saves what one sees: pictures as PNG and SVG, figures as CSV.

import { el } from "./dom";
import { Picture, png, svg } from "./picture";

/** A cell of a table; a number is written as it is. */
export type Cell = string | number;

/** What can be saved. */
export interface Source {
	readonly name: string;
	/** A table, the first line of which says what is in the columns, and in which units. */
	csv?(): Cell[][];
	picture?(): Picture;
}

/** A table as text. A text that a spreadsheet would take for a formula gets an apostrophe. */
export function csv(rows: Cell[][]): string {
	const cell = (c: Cell) => {
		if (typeof c === "number") return String(c);
		const text = /^[=+\-@\t\r\n＝＋－＠]/.test(c) ? "'" + c : c;
		return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
	};
	return "\ufeff" + rows.map(r => r.map(cell).join(",") + "\r\n").join("");
}

function download(name: string, data: Blob): void {
	const url = URL.createObjectURL(data);
	el("a", { href: url, download: name }).click();
	setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** Buttons that save a source; update hides those for what the source that is given now has not. */
export function saver(of: string, source: () => Source): { element: HTMLElement; update: () => void } {
	const button = (text: string, has: (s: Source) => unknown, make: (s: Source) => Blob | Promise<Blob>) => {
		const say = (text: string, title: string) => {
			b.textContent = text;
			b.title = title;
		};
		const ready = () => say(text, `Save this view as ${text}`);
		const click = async () => {
			const s = source();
			ready();
			try {
				download(`snapana ${of} ${s.name}.${text}`.toLowerCase().replaceAll(" ", "-"), await make(s));
			} catch (e) {
				say("Failed", e instanceof Error ? e.message : String(e));
			}
		};
		const b = el("button", { type: "button", click });
		ready();
		return { b, has };
	};
	const all = [
		button(
			"PNG",
			s => s.picture,
			s => png(s.picture!()),
		),
		button(
			"SVG",
			s => s.picture,
			s => svg(s.picture!()),
		),
		button(
			"CSV",
			s => s.csv,
			s => new Blob([csv(s.csv!())], { type: "text/csv" }),
		),
	];
	const update = () => {
		const s = source();
		for (const { b, has } of all) b.hidden = !has(s);
		element.hidden = all.every(({ b }) => b.hidden);
	};
	const element = el("span", { class: "buttons" }, el("span", { class: "lead" }, "Save"), ...all.map(x => x.b));
	return { element, update };
}
