// Makes the page interactive. Without it, or where something fails, the page stays as it was.

import { telling } from "./colors";
import { load, Packed } from "./data";
import { contents } from "./contents";
import { copier, el, resized } from "./dom";
import { search, status, toolbar } from "./controls";
import { Curves } from "./curves";
import { Devices } from "./devices";
import { Events } from "./events";
import { Explain } from "./explain";
import { relieve, serve } from "./fit";
import { Flame } from "./flame";
import { Holders } from "./holders";
import { bounds, Limits } from "./limits";
import { address, fields, linked } from "./link";
import { Minimap } from "./minimap";
import { Device, Tables } from "./model";
import { Tabs } from "./panel";
import { pinnedBox } from "./pinned";
import { rangeLine } from "./range";
import { Room } from "./room";
import { Ruler } from "./ruler";
import { saver } from "./save";
import { Segments } from "./segments";
import { keySheet } from "./sheet";
import { look, showButtons } from "./show";
import { Source } from "./source";
import { Table } from "./table";
import { Timeline } from "./timeline";
import { Trail } from "./trail";
import { Tree } from "./tree";
import { View } from "./view";
import { Windows } from "./windows";

/** The views of the page by device, for the console and for tests. */
export interface Live {
	device: Device;
	view: View;
	timeline: Timeline;
	table: Table;
	holders: Holders | null;
	ruler: Ruler;
	tabs: Tabs;
	curves?: Curves;
}

/** Makes the still charts of the section live. */
function charts(place: HTMLElement, view: View, timeline: Timeline, i: number, server?: string): Curves | undefined {
	const section = place.closest("section")!,
		curves = section.querySelector<HTMLElement>(".curves"),
		table = section.querySelector<HTMLElement>("table.whatif");
	section.querySelector(".over-trace")?.append(
		el(
			"button",
			{
				type: "button",
				click: () => {
					view.show("free");
					timeline.element.scrollIntoView({ block: "center" });
					timeline.focus();
				},
			},
			"Show in the timeline",
		),
	);
	if (!curves || !table || !view.dev.whatif.replays.length) return;
	const drawn = new Curves(view, curves, table);
	curves.after(new Limits(view, drawn, i, server && "limit").element);
	return drawn;
}

/** link gives the address of what is shown; server is where windows of the trace are. */
function mount(
	place: HTMLElement,
	packed: Packed,
	tables: Tables,
	i: number,
	link: () => string,
	server?: string,
): Live {
	const device = new Device(packed, i, tables),
		view = new View(device, telling(device)),
		timeline = new Timeline(view);
	const table = new Table(view),
		ruler = new Ruler(view),
		holders = device.held.bytes.length ? new Holders(view) : null;
	const panels = [
		new Flame(view),
		new Tree(view),
		table,
		...(holders ? [holders] : []),
		new Segments(view),
		new Room(view),
		new Explain(view),
		...(tables.source.files.length ? [new Source(view)] : []),
		...(device.events ? [new Events(view), ruler] : []),
	];
	const save = saver(`gpu${device.ordinal}`, () => tabs.shown);
	view.listen(changed => changed.has("tab") && save.update());
	const asText = copier("Copy as text", () => tabs.shown.text?.() ?? tabs.shown.element.innerText);
	place.classList.add("on");
	place.append(
		device.events
			? toolbar(view, copier("Copy link", link), saver(`gpu${device.ordinal}`, () => timeline).element)
			: "",
		search(view),
		...(device.events
			? [timeline.element, ...(server ? [new Windows(view, server, i).element] : []), new Minimap(view).element]
			: []),
		status(view),
		...(device.events ? [rangeLine(view, () => tabs.open(ruler.name)), keySheet()] : []),
	);
	const tabs = new Tabs(
		view,
		"What is live at the cursor",
		panels,
		el("span", { class: "buttons" }, asText, save.element),
	);
	place.append(tabs.element, pinnedBox(view));
	tabs.show(0);
	save.update();
	timeline.render();
	return { device, view, timeline, table, holders, ruler, tabs, curves: charts(place, view, timeline, i, server) };
}

async function start(): Promise<void> {
	const data = document.getElementById("snapana-data"),
		text = data?.textContent;
	if (!text) return;
	const packed = await load(text),
		tables = new Tables(packed),
		live: Live[] = [];
	const ordinals = packed.header.devices.map(d => d.ordinal);
	const devices = new Devices(ordinals, i => {
		const place = document.getElementById(`gpu${ordinals[i]}-live`);
		if (!place || live[i]) return;
		try {
			live[i] = mount(place, packed, tables, i, () => trail.link(), data.dataset.windows);
			trail.add(i, linked(live[i].view, fields));
			place.closest("section")!.classList.add("is-live");
		} catch (e) {
			place.replaceChildren(
				el(
					"p",
					{ class: "empty" },
					`The interactive view failed (${e}); the figures on this page are complete without it.`,
				),
			);
			throw e;
		}
	});
	const trail = new Trail(devices, ordinals);
	(globalThis as unknown as { snapana: unknown }).snapana = { live, packed, trail, fit: { relieve, serve, bounds } };
	devices.start();
	trail.start();
	contents(devices, ordinals);
	if (address().link && live[devices.shown]) look(live[devices.shown]);
	showButtons(packed, i => {
		devices.open(i);
		return live[i];
	});
	for (const e of document.querySelectorAll<HTMLElement>(".scroll"))
		resized(e, () =>
			e.scrollWidth > e.clientWidth ? e.setAttribute("tabindex", "0") : e.removeAttribute("tabindex"),
		);
	document.documentElement.classList.add("ready");
	performance.mark("snapana-ready");
}

start().catch(e => console.error("snapana:", e));
