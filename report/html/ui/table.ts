// The live memory as a table, grouped and sorted as one likes.

import { choice, el, fill } from "./dom";
import * as format from "./format";
import { heads } from "./heads";
import { LabelKind, labelKinds } from "./labels";
import { Group } from "./model";
import { Panel } from "./panel";
import { Cell } from "./save";
import { looked, State, View } from "./view";

const mostRows = 200;

type By = "site" | "stack" | "category" | "stream" | "pool" | "size" | "block";
type Key = "bytes" | "count" | "requested" | "name";

export class Table implements Panel {
	readonly name = "Table";
	readonly needs: (keyof State)[] = ["cursor", ...looked];
	readonly element = el("div", { class: "panel" });
	private by: string = "site"; // one of By, or the name of one of labels
	private readonly labels: LabelKind[];
	sort: Key = "bytes";
	down = true;
	private readonly body = el("div", {});

	constructor(readonly view: View) {
		this.labels = labelKinds(view.dev.tables.labels);
		const kinds: [string, string][] = [
			["site", "site"],
			["stack", "whole stack"],
			["category", "category"],
			["stream", "stream"],
			["pool", "pool"],
			["size", "size"],
			["block", "block"],
			...this.labels.map((l): [string, string] => [l.name, l.name]),
		];
		this.element.append(
			choice("Group by", kinds, this.by, v => {
				this.by = v;
				this.render();
			}),
			this.body,
		);
	}

	/** The groups of what is live at the cursor; what is not in the page is one of them. */
	groups(by: string = this.by): Group[] {
		const { dev } = this.view,
			t = dev.tables,
			label = this.labels.find(l => l.name === by);
		const names: Record<By, (row: number) => string> = {
			site: row => t.site(dev.stackOf(row)),
			stack: row => String(dev.stackOf(row)),
			category: row => t.categories[dev.kinds.category[dev.kind[row]]],
			stream: row => dev.streamName(dev.kinds.place[dev.kind[row]]),
			pool: row => dev.placeName(dev.kinds.place[dev.kind[row]]),
			size: row => format.bytes(dev.lives.size[row]),
			block: row =>
				`${dev.blockName(row)}, ${dev.whereName(dev.kinds.place[dev.kind[row]])}: ${t.site(dev.stackOf(row))}`,
		};
		const all = dev.group(
			this.view.live(),
			label
				? row =>
						dev.lives.born[row] < 0
							? "(before the trace, not recorded)"
							: label.groups[dev.kinds.label[dev.kind[row]]]
				: names[by as By],
		);
		if (by === "stack") for (const g of all) g.name = t.site(g.stack);
		const rest = this.view.choosy ? 0 : (dev.restAt(this.view.state.cursor)?.reduce((a, b) => a + b, 0) ?? 0);
		if (rest > 0)
			all.push({ name: "(not in this page, see above)", bytes: rest, requested: 0, count: 0, stack: -1 });
		return all;
	}

	render(): void {
		const all = this.groups(),
			sum = all.reduce((a, g) => a + g.bytes, 0),
			sign = this.down ? -1 : 1;
		all.sort((a, b) =>
			this.sort === "name" ? (a.name < b.name ? -sign : sign) : sign * (a[this.sort] - b[this.sort]),
		);
		const head = heads<Key>(this, next => {
			Object.assign(this, next);
			this.render();
		});
		const rows = all
			.slice(0, mostRows)
			.map(g =>
				el(
					"tr",
					{},
					el("td", { class: "n b" }, format.bytes(g.bytes)),
					el("td", { class: "n" }, format.percent(g.bytes, sum)),
					el("td", { class: "n" }, g.count ? format.count(g.count) : ""),
					el("td", { class: "n c" }, g.requested ? format.bytes(g.requested) : ""),
					el("td", { class: "path" }, this.by === "stack" && g.stack >= 0 ? this.unfold(g) : g.name),
				),
			);
		fill(
			this.body,
			el(
				"div",
				{ class: "scroll", tabindex: 0, role: "region", "aria-label": "live memory" },
				el(
					"table",
					{ class: "groups" },
					el(
						"thead",
						{},
						el(
							"tr",
							{},
							head("bytes", "Bytes"),
							el("th", { scope: "col", class: "n" }, "Share"),
							head("count", "Blocks"),
							head("requested", "Requested", "n c"),
							head("name", this.by, ""),
						),
					),
					el("tbody", {}, ...rows),
					el(
						"tfoot",
						{},
						el(
							"tr",
							{},
							el("td", { class: "n b" }, format.bytes(sum)),
							el("td", { class: "n" }, ""),
							el("td", { class: "n" }, format.count(all.reduce((a, g) => a + g.count, 0))),
							el("td", { class: "n c" }),
							el("td", {}, "total"),
						),
					),
				),
			),
			all.length > mostRows && el("p", { class: "more" }, `… ${format.count(all.length - mostRows)} more`),
		);
	}

	text(): string {
		return (
			this.groups()
				.map(g => `${format.bytes(g.bytes)}\t${g.count}\t${g.name}`)
				.join("\n") + "\n"
		);
	}

	csv(): Cell[][] {
		return [
			["bytes", "blocks", "requested (bytes)", this.by],
			...this.groups().map(g => [g.bytes, g.count, g.requested, g.name]),
		];
	}

	private unfold(g: Group): HTMLElement {
		return el(
			"details",
			{},
			el("summary", {}, g.name),
			el(
				"ol",
				{ class: "stack" },
				...this.view.dev.tables.frames(g.stack, this.view.state.internals).map(f => el("li", {}, f)),
			),
		);
	}
}
