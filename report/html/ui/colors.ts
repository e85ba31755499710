// Colors are those of style.css, so that they follow light and dark and match the tables.

import { Paint, tint } from "./raster";
import { never } from "./bands";
import { isGhost, title } from "./holders";
import { Device, gone } from "./model";
import { ColorBy, View } from "./view";

/** A color of the style sheet as ABGR, the order of a framebuffer's bytes. */
export function abgr(css: string): number {
	const v = parseInt(css.trim().slice(1), 16);
	return (0xff000000 | ((v & 255) << 16) | (v & 0xff00) | (v >> 16)) >>> 0;
}

function hex(c: number): string {
	return "#" + (((c & 255) << 16) | (c & 0xff00) | ((c >> 16) & 255) | 0x1000000).toString(16).slice(1);
}

export function css(name: string): string {
	return getComputedStyle(document.documentElement)
		.getPropertyValue("--" + name)
		.trim();
}

const ages: [number, string][] = [
	[10, "freed within 10 events"],
	[100, "within 100"],
	[1000, "within 1 000"],
	[10_000, "within 10 000"],
	[never, "later"],
];

export interface Scheme extends Paint {
	legend: Legend;
	of: (row: number) => number; // the row of legend
}

/** Decides on the colors of allocations. */
export function scheme(view: View): Scheme {
	const dev = view.dev,
		by = view.state.color;
	const { of, legend, restGroup } = groups(dev, by),
		dim = view.choosy;
	return finish(
		view,
		of,
		legend,
		restGroup,
		row => dim && !view.hit(row),
		row => dev.kind[row],
	);
}

/** Decides on the colors of reserved ranges: by pool and stream. */
export function rangeScheme(view: View): Scheme {
	const { legend, slotOf } = byPlace(view.dev, p => view.dev.placeName(p));
	return finish(
		view,
		row => slotOf[view.dev.rangePlace[row]],
		legend,
		() => 0,
		() => false,
		row => row,
	);
}

/** How far each of a color's shades is towards the background: neighbors can be told apart. */
const shades = [0.1, 0.2, 0.3, 0.4];

type Legend = { name: string; css: string }[];

function finish(
	view: View,
	of: (row: number) => number,
	names: Legend,
	restGroup: (c: number) => number,
	faded: (row: number) => boolean,
	kind: (row: number) => number,
): Scheme {
	const back = abgr(css("card")),
		n = names.length,
		ink = abgr(css("ink"));
	const bright = names.flatMap(g => shades.map(part => tint(abgr(g.css), back, part)));
	const pale = bright.map(c => tint(c, back, 0.84));
	const legend = names.map((g, i) => ({ name: g.name, css: hex(bright[i * shades.length + 1]) }));
	const pinned = view.state.mode === "reserved" ? -1 : view.state.pinned;
	const groups = legend.map((g, i) => ({ name: g.name, color: bright[i * shades.length + 1] }));
	const dim = view.choosy;
	if (dim) groups.push(...legend.map((g, i) => ({ name: g.name, color: pale[i * shades.length + 1] })));
	return {
		legend,
		of,
		groups,
		restGroup: c => restGroup(c) + (dim ? n : 0),
		color: row =>
			row === pinned
				? ink
				: (faded(row) ? pale : bright)[of(row) * shades.length + (Math.imul(kind(row) + 1, 0x9e3779b1) >>> 30)],
		group: row => of(row) + (faded(row) ? n : 0),
	};
}

/** The colors of allocations: their names, the one of a row, and that of a category of what is not in the page. */
export function groups(
	dev: Device,
	by: ColorBy,
): { of: (row: number) => number; legend: Legend; restGroup: (c: number) => number } {
	const names = dev.tables.categories,
		kinds = dev.kinds;
	switch (by) {
		case "category": {
			const legend = names.map((name, c) => ({ name, css: css(dev.tables.colors[c]) }));
			return { of: row => kinds.category[dev.kind[row]], legend, restGroup: c => c };
		}
		case "site": {
			const top = topSites(dev),
				rank = new Map(top.map((s, i) => [s, i]));
			const legend = [
				...top.map((s, i) => ({ name: dev.tables.strings[s], css: css("s" + (i + 1)) })),
				{ name: "other sites", css: css("other") },
			];
			const ofStack = Int32Array.from(dev.tables.stackSite, s => rank.get(s) ?? top.length);
			return { of: row => ofStack[dev.stackOf(row)], legend, restGroup: () => top.length };
		}
		case "stream":
		case "pool": {
			const { legend, slotOf } = byPlace(dev, p => (by === "stream" ? dev.streamName(p) : dev.placeName(p)));
			legend.push({ name: "merged", css: css("other") });
			return { of: row => slotOf[kinds.place[dev.kind[row]]], legend, restGroup: () => legend.length - 1 };
		}
		case "holder": {
			const all = dev.tables.holders,
				{ bytes } = dev.held,
				rows = all
					.map((_, h) => h)
					.filter(h => all[h].standing && bytes[h])
					.sort((a, b) => bytes[b] - bytes[a]);
			const first = (ghost: boolean, slots: string[]) =>
				rows
					.filter(h => isGhost(all[h]) === ghost)
					.slice(0, slots.length)
					.map((h, i) => ({ h, name: title(dev, h), slot: slots[i] }));
			const shown = [...first(true, ["leak", "s7", "s4", "s2"]), ...first(false, ["s1", "s3", "s5", "s8"])],
				n = shown.length;
			const others = [
				["other holders", "s9"],
				[title(dev, 0), "other"],
				[title(dev, gone), "a1"],
				["not in this page", "a1"],
			].map(([name, slot]) => ({ h: -1, name, slot }));
			const group = all.map((_, h) => (h ? shown.findIndex(g => g.h === h) : n + 1)).map(g => (g < 0 ? n : g));
			return {
				of: row => group[dev.holder[row]] ?? n + 2,
				legend: [...shown, ...others].map(g => ({ name: g.name, css: css(g.slot) })),
				restGroup: () => n + 3,
			};
		}
		case "age": {
			const legend = [
				...ages.map(([, name], i) => ({ name, css: css("a" + (i + 1)) })),
				{ name: "never freed", css: css("a6") },
			];
			return { of: row => age(dev, row), legend, restGroup: () => 0 };
		}
	}
}

function age(dev: Device, row: number): number {
	const end = dev.lives.freed[row];
	if (end === never) return ages.length;
	return ages.findIndex(([most]) => end - dev.lives.born[row] <= most);
}

function byPlace(dev: Device, name: (place: number) => string): { legend: Legend; slotOf: number[] } {
	const names: string[] = [];
	const slotOf = dev.places.map((_, p) => {
		const s = name(p);
		if (!names.includes(s)) names.push(s);
		return names.indexOf(s);
	});
	const legend = names.map((n, i) => ({
		name: n,
		css: css(n === "in no known segment" ? "other" : "s" + (((i + 8) % 9) + 1)),
	}));
	return { legend, slotOf };
}

/** What colors tell the most: what memory is for, unless that is unknown of most of it. */
export function telling(dev: Device): ColorBy {
	const peak = dev.marks.find(m => m.kind === "peak")?.event ?? dev.events - 1,
		names = dev.tables.categories;
	const groups = dev.group(dev.lives.liveAt(peak), row => names[dev.kinds.category[dev.kind[row]]]);
	const all = groups.reduce((a, g) => a + g.bytes, 0);
	const vague = groups.filter(g => g.name === "other" || g.name === "unknown").reduce((a, g) => a + g.bytes, 0);
	return vague > all / 2 ? "site" : "category";
}

/** The sites that hold the most at the peak, and at the end. */
function topSites(dev: Device): number[] {
	const bytes = new Map<number, number>();
	const peak = dev.marks.find(m => m.kind === "peak")?.event ?? dev.events - 1;
	for (const event of [peak, dev.events - 1]) {
		for (const row of dev.lives.liveAt(event)) {
			const site = dev.tables.stackSite[dev.stackOf(row)];
			bytes.set(site, (bytes.get(site) ?? 0) + dev.lives.size[row]);
		}
	}
	return [...bytes]
		.sort((a, b) => b[1] - a[1] || a[0] - b[0])
		.slice(0, 8)
		.map(([s]) => s);
}
