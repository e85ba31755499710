// The figures of the timeline's picture, as a table.

import { Columns, firstAt, never } from "./bands";
import { Scheme } from "./colors";
import { FreeColumns } from "./free";
import { Device } from "./model";
import { Cell } from "./save";
import { View } from "./view";

/** What the timeline shows: one line for each allocation or range, or where it shows sums for each column. */
export function figures(view: View, cols: Columns, scheme: Scheme): Cell[][] {
	switch (view.state.mode) {
		case "bands":
			return allocations(view, cols);
		case "reserved":
			return ranges(view.dev, cols);
		case "stacked":
			return sums(view, cols, scheme);
		case "free":
			return [
				[...moment, ...view.dev.tables.free.map(c => `${c.name} (bytes)`)],
				...byColumn(view.dev, cols, (cols as FreeColumns).bytes),
			];
	}
}

const moment = ["event", "time (microseconds)"];

/** The time of an event, "" where none is known. */
function time(d: Device, event: number): Cell {
	return d.hasTimes && event >= 0 && event < d.events ? Math.round(d.timeOf(event)) : "";
}

/** When something began and ended; "" for before the trace and for never. */
function life(d: Device, born: number, freed: number): Cell[] {
	return [born < 0 ? "" : born, time(d, born), freed === never ? "" : freed, time(d, freed)];
}

const lifeNames = ["from event", "from time (microseconds)", "to event", "to time (microseconds)"];

function allocations(view: View, cols: Columns): Cell[][] {
	const d = view.dev,
		l = d.lives,
		out: Cell[][] = [
			[
				"block",
				"address",
				"size (bytes)",
				"requested (bytes)",
				...lifeNames,
				"purpose",
				"stream",
				"pool",
				"site",
			],
		];
	l.overlapping(cols.edges[0] - 1, cols.edges[cols.n] - 1, row => {
		if (view.choosy && !view.hit(row)) return;
		const k = d.kind[row],
			place = d.kinds.place[k];
		out.push([
			d.blockName(row),
			d.hex(d.addr[row]),
			l.size[row],
			d.kinds.requested[k],
			...life(d, l.born[row], l.freed[row]),
			d.tables.categories[d.kinds.category[k]],
			d.streamName(place),
			d.poolName(place),
			d.tables.site(d.stackOf(row)),
		]);
	});
	return out;
}

function ranges(d: Device, cols: Columns): Cell[][] {
	const r = d.ranges,
		out: Cell[][] = [["address", "size (bytes)", ...lifeNames, "stream", "pool"]];
	r.overlapping(cols.edges[0] - 1, cols.edges[cols.n] - 1, row => {
		const place = d.rangePlace[row];
		out.push([
			d.hex(d.rangeAddr[row]),
			r.size[row],
			...life(d, r.born[row], r.freed[row]),
			d.streamName(place),
			d.poolName(place),
		]);
	});
	return out;
}

/**
 * The bytes of each color that are looked at, at the moment that a column shows. They are estimated where the page
 * lacks allocations and knows their sums of another moment, or not which of them are looked at.
 */
function sums(view: View, cols: Columns, scheme: Scheme): Cell[][] {
	const d = view.dev,
		l = d.lives,
		{ choosy } = view,
		estimated: string[] = new Array(cols.n).fill("no"),
		bytes = scheme.legend.map(() => new Float64Array(cols.n + 1));
	l.overlapping(cols.event[0], cols.event[cols.n - 1], row => {
		if (choosy && !view.hit(row)) return;
		const sum = bytes[scheme.of(row)];
		sum[firstAt(cols.event, l.born[row])] += l.size[row];
		sum[firstAt(cols.event, l.freed[row])] -= l.size[row];
	});
	for (const sum of bytes) for (let c = 1; c < cols.n; c++) sum[c] += sum[c - 1];
	const { rest } = l;
	if (rest && cols.span)
		cols.span.forEach((s, c) => {
			if (s < 0) return;
			if (choosy || rest.event[s] !== cols.event[c]) estimated[c] = "yes";
			if (!choosy) rest.groups.forEach((g, k) => (bytes[scheme.restGroup(k)][c] += g[s]));
		});
	return [
		[...moment, ...scheme.legend.map(g => `${g.name} (bytes)`), "estimated"],
		...byColumn(d, cols, [...bytes, estimated]),
	];
}

/** A line for each moment that columns show. */
function byColumn(d: Device, cols: Columns, cells: ArrayLike<Cell>[]): Cell[][] {
	const out: Cell[][] = [];
	for (let c = 0; c < cols.n; c++)
		if (c === 0 || cols.event[c] !== cols.event[c - 1])
			out.push([cols.event[c], time(d, cols.event[c]), ...cells.map(list => list[c])]);
	return out;
}
