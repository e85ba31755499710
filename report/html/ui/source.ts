// Lines of the program beside what they allocated, where its files were at hand when the page was made.

import { el, fill } from "./dom";
import * as format from "./format";
import { Tables } from "./model";
import { Panel } from "./panel";
import { looked, State, View } from "./view";

/** A line of a file. */
export interface Place {
	file: number; // row of Tables.source.files
	line: number;
	odd: boolean; // the file as it is cannot be what ran there
}

/** The line of a node of the tree of calls, null where it is not at hand. */
export function placeOf(t: Tables, node: number): Place | null {
	const frame = t.nodeFrame[node],
		file = (t.source.file[frame] ?? 0) - 1;
	return node > 0 && file >= 0 ? { file, line: t.source.line[frame], odd: t.source.odd[frame] > 0 } : null;
}

/** The text of a line, "" where it is not in the page. */
export function textOf(t: Tables, p: Place): string {
	const piece = t.source.files[p.file].pieces.find(s => p.line >= s.first && p.line < s.first + s.lines.length);
	return piece ? piece.lines[p.line - piece.first] : "";
}

/** What the frames of a line have in common, and those of no other line. */
function frameAt(t: Tables, file: number, line: number): string {
	const frame = t.source.file.findIndex((f, i) => f === file + 1 && t.source.line[i] === line),
		text = t.strings[t.frameText[frame]],
		end = text.indexOf(`:${line} `);
	return end < 0 ? text : text.slice(0, end) + `:${line} `;
}

/** Opens a line in the editor; nothing where none was chosen. */
export function editorLink(t: Tables, file: number, line: number, text: string): HTMLElement | null {
	const { link, name } = t.source.files[file];
	return link
		? el(
				"a",
				{
					class: "open-in",
					href: link.replaceAll("{line}", String(line)),
					title: `Open ${name}:${line} in the editor`,
				},
				text,
			)
		: null;
}

/** A frame with its line of code. */
export function codeOf(t: Tables, node: number): HTMLElement | null {
	const p = placeOf(t, node);
	if (!p) return null;
	return el(
		"span",
		{ class: "code-line" },
		el("code", {}, textOf(t, p).trim()),
		" ",
		editorLink(t, p.file, p.line, "open"),
		p.odd && el("span", { class: "hint" }, " the file has changed since"),
	);
}

/** What lines allocated that is live: by the line itself, and by all that it called. */
interface Sums {
	self: number;
	all: number;
	blocks: number;
	odd: boolean;
}

export class Source implements Panel {
	readonly name = "Source";
	readonly needs: (keyof State)[] = ["cursor", ...looked];
	readonly element = el("div", { class: "panel source" });
	private file = -1; // that is shown, -1 for the one that allocated most

	constructor(readonly view: View) {}

	/** What each line of each file has live at the cursor. */
	sums(): Map<number, Sums>[] {
		const { dev } = this.view,
			t = dev.tables,
			out = t.source.files.map(() => new Map<number, Sums>()),
			bytes = new Map<number, { all: number; blocks: number }>(); // by stack
		for (const row of this.view.live()) {
			const stack = dev.stackOf(row),
				s = bytes.get(stack) ?? { all: 0, blocks: 0 };
			s.all += dev.lives.size[row];
			s.blocks++;
			bytes.set(stack, s);
		}
		for (const [stack, { all, blocks }] of bytes) {
			const seen = new Set<string>(); // a line that calls itself counts once
			for (let n = t.stackNode[stack]; n > 0; n = t.nodeParent[n]) {
				const p = placeOf(t, n);
				if (!p || seen.has(`${p.file}:${p.line}`)) continue;
				const lines = out[p.file],
					s = lines.get(p.line) ?? { self: 0, all: 0, blocks: 0, odd: false };
				if (!seen.size) s.self += all;
				s.all += all;
				s.blocks += blocks;
				s.odd ||= p.odd;
				lines.set(p.line, s);
				seen.add(`${p.file}:${p.line}`);
			}
		}
		return out;
	}

	render(): void {
		const { view } = this,
			{ files, dir } = view.dev.tables.source,
			sums = this.sums(),
			total = sums.map(lines => [...lines.values()].reduce((a, s) => a + s.self, 0)),
			order = files
				.map((_, i) => i)
				.sort((a, b) => total[b] - total[a] || (files[a].name < files[b].name ? -1 : 1)),
			shown = this.file < 0 ? order[0] : this.file;
		const select = el(
			"select",
			{
				change: () => {
					this.file = Number(select.value);
					this.render();
					this.element.querySelector("select")!.focus();
				},
			},
			...order.map(i =>
				el("option", { value: i, selected: i === shown }, `${files[i].name} — ${format.bytes(total[i])}`),
			),
		);
		const odd = [...sums[shown].values()].some(s => s.odd);
		fill(
			this.element,
			el("div", { class: "toolbar" }, el("label", { class: "choice" }, el("span", {}, "File"), select)),
			this.table(shown, sums[shown]),
			el(
				"p",
				{ class: "hint" },
				`Read below ${dir} when this page was made. Whether lines have changed since the recording is not known` +
					(odd ? ", but for those marked ✱: their function is not there any more." : "."),
			),
		);
	}

	private table(file: number, sums: Map<number, Sums>): HTMLElement {
		const t = this.view.dev.tables,
			{ pieces, name } = t.source.files[file],
			most = Math.max(1, ...[...sums.values()].map(s => s.all));
		const line = (text: string, n: number) => {
			const s = sums.get(n),
				number = editorLink(t, file, n, format.count(n)) ?? format.count(n),
				code = el("td", { class: "code" }, text || " ");
			if (s) code.style.setProperty("--heat", `${Math.round((60 * s.all) / most)}%`);
			const find = () => this.view.set({ search: frameAt(t, file, n), regex: false });
			return el(
				"tr",
				{ class: s ? "hot" : "" },
				el("td", { class: "n b" }, s && s.self > 0 && format.bytes(s.self)),
				el(
					"td",
					{ class: "n" },
					s &&
						el(
							"button",
							{ type: "button", class: "link", title: "Search for this line", click: find },
							format.bytes(s.all),
						),
				),
				el("td", { class: "n c" }, s && format.count(s.blocks)),
				el("td", { class: "n at" }, s?.odd && "✱ ", number),
				code,
			);
		};
		return el(
			"div",
			{ class: "scroll", tabindex: 0, role: "region", "aria-label": "lines of " + name },
			el(
				"table",
				{ class: "lines" },
				el(
					"thead",
					{},
					el(
						"tr",
						{},
						...["Itself", "With calls", "Blocks", "Line", "Code"].map((h, i) =>
							el("th", { scope: "col", class: ["n", "n", "n c", "n", ""][i] }, h),
						),
					),
				),
				...pieces.map(p => el("tbody", {}, ...p.lines.map((text, i) => line(text, p.first + i)))),
			),
		);
	}

	text(): string {
		return [...this.element.querySelectorAll("tr")]
			.map(tr => [...tr.cells].map(c => c.textContent).join("\t") + "\n")
			.join("");
	}
}
