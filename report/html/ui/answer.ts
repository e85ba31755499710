// What freeing blocks would do, in words: for one block and for a choice of them.

import { Failure } from "./data";
import { el, fill, resized } from "./dom";
import { Fit, Relief, relieve, serve } from "./fit";
import * as format from "./format";
import { Device } from "./model";
import { View } from "./view";

/** The request that failed at an event, or else the last one that did. */
function failureAt(dev: Device, event: number): Failure | undefined {
	return dev.failures.find(f => f.event === event) ?? dev.failures[dev.failures.length - 1];
}

/** Whether all that lives after an event is in the page. */
function complete(dev: Device, event: number): boolean {
	return !dev.leftOut.ranges && !dev.restAt(event);
}

/** What freed blocks give. */
function relieved(dev: Device, r: Relief): string {
	const one = r.blocks === 1,
		pool = one
			? `Its ${format.bytes(r.bytes)} would go back to the pool`
			: `${format.bytes(r.bytes)} in ${format.plural(r.blocks, "block")} would go back to the pool`;
	const names = r.segments.slice(0, mostSegments).map(s => dev.hex(s.addr)),
		more = r.segments.length - names.length,
		whole =
			names.length > 0 &&
			` in ${format.plural(r.segments.length, "whole segment")} ` +
				`(${names.join(", ")}${more ? `, … ${format.count(more)} more` : ""})`;
	const device = r.returned
		? `empty_cache() could then give ${format.bytes(r.returned)} more back to the device${whole || ", as pages"}`
		: `nothing more could go back to the device, as other blocks live in the same segment${one ? "" : "s"}`;
	return `${pool}; ${device}. The largest free range around ${one ? "it" : "them"} would have ${format.bytes(r.around)}.`;
}

const mostSegments = 4;

/** Says what freeing blocks would do, of which those count that are live after an event. */
export function answer(view: View, event: number, rows: number[]): HTMLElement[] {
	const { dev } = view;
	if (!complete(dev, event))
		return [
			el("p", {}, "Not all that was live then is in this page, so what freeing some of it does is not known."),
		];
	const r = relieve(dev, event, rows),
		fit = fits(view, event, new Set(rows));
	return [
		...(fit ? [fit] : []),
		...(r.blocks ? [el("p", {}, relieved(dev, r))] : []),
		...(r.waiting
			? [
					el(
						"p",
						{},
						`The program had freed ${format.plural(r.waiting, "chosen block")} by then: another stream may still use them.`,
					),
				]
			: []),
	];
}

/** The same of the blocks that a user chose, at the cursor; it is hidden while there are none, unless there is a hint. */
export function answerBox(view: View, hint = ""): HTMLElement {
	const box = el("div", { class: "answer", role: "status" });
	const update = () => {
		const { cursor, freed } = view.state,
			{ lives } = view.dev,
			rows = [...freed].filter(r => lives.born[r] <= cursor && lives.freed[r] > cursor);
		box.hidden = !hint && !rows.length;
		if (!box.hidden && box.offsetParent)
			fill(box, !rows.length && el("p", {}, hint), ...answer(view, cursor, rows));
	};
	view.listen(c => (["cursor", "freed", "detail"] as const).some(k => c.has(k)) && update());
	resized(box, update); // when it comes to the screen
	return box;
}

/** Says whether the request that failed would be served without some of the blocks that are live after an event. */
function fits(view: View, event: number, gone: ReadonlySet<number>): HTMLElement | null {
	const dev = view.dev,
		f = failureAt(dev, event);
	if (!f) return null;
	const here = f.event === event,
		fit = serve(dev, event, gone, f, here ? f.free : -1),
		still = gone.size ? "still " : "",
		asked = `The ${format.bytes(f.rounded)} that failed at event ${format.count(f.event)}`;
	const go = el("button", { type: "button", click: () => view.go(f.event) }, "Go to the failure");
	if (f.way !== "refused" && f.way !== "unclear")
		return el(
			"p",
			{ class: "fits unclear" },
			`${asked} had room as it was, by the allocator's rules: something that the file does not tell refused it, ` +
				"so freeing blocks promises nothing.",
		);
	const good = fit.way === "hole" || fit.way === "new" || fit.way === "release";
	return el(
		"p",
		{ class: "fits " + (good ? "good" : fit.way) },
		el(
			"b",
			{},
			`${asked} ${good ? "would now fit" : fit.way === "refused" ? `would ${still}not fit` : `may ${still}not fit`}`,
		),
		": " + why(dev, fit) + ".",
		fit.way === "unclear" && !here && el("span", {}, " ", go),
	);
}

function why(dev: Device, fit: Fit): string {
	const needs = format.bytes(fit.needs),
		has = format.bytes(fit.has),
		largest = fit.largest ? `the largest free range has ${format.bytes(fit.largest)}` : "no free range is left";
	switch (fit.way) {
		case "hole":
			return `in the free range of ${format.bytes(fit.size)} at ${dev.hex(fit.addr)}`;
		case "new":
			return `the device has ${has} free, and ${needs} is needed`;
		case "release":
			return (
				`once the allocator gives back ${format.bytes(fit.returned)} of free segments, the device has ` +
				`${has}, and ${needs} is needed`
			);
		case "refused":
			return `${largest}, and with all that could be given back the device has ${has} of the ${needs} needed`;
		case "unclear":
			return (
				`${largest}, and ${has} of the ${needs} needed could be given back; what else the device had free ` +
				"at this moment was not recorded"
			);
	}
}
