// Makes the page interactive. Without it, or where something fails, the page stays as it was.

import { telling } from "./colors";
import { load, Packed } from "./data";
import { copy, el, resized } from "./dom";
import { keyHelp, search, status, toolbar } from "./controls";
import { Curves } from "./curves";
import { Events } from "./events";
import { Flame } from "./flame";
import { Holders } from "./holders";
import { Minimap } from "./minimap";
import { Device, Tables } from "./model";
import { Tabs } from "./panel";
import { Ruler } from "./ruler";
import { Segments } from "./segments";
import { showButtons } from "./show";
import { Table } from "./table";
import { Timeline } from "./timeline";
import { Tree } from "./tree";
import { View } from "./view";
import { Windows } from "./windows";
import { devices } from "./devices";

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
function charts(place: HTMLElement, view: View, timeline: Timeline): Curves | undefined {
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
	return curves && table && view.dev.whatif.replays.length ? new Curves(view, curves, table) : undefined;
}

function mount(place: HTMLElement, packed: Packed, tables: Tables, i: number, server?: string): Live {
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
		...(device.events ? [new Events(view), ruler] : []),
	];
	const done = el(
		"button",
		{
			type: "button",
			click: async () => {
				await copy(tabs.shown.text?.() ?? tabs.shown.element.innerText);
				done.textContent = "Copied";
				setTimeout(() => (done.textContent = "Copy as text"), 1200);
			},
		},
		"Copy as text",
	);
	place.classList.add("on");
	place.append(
		device.events ? toolbar(view) : "",
		search(view),
		...(device.events
			? [timeline.element, ...(server ? [new Windows(view, server, i).element] : []), new Minimap(view).element]
			: []),
		status(view),
		...(device.events ? [keyHelp()] : []),
	);
	const tabs = new Tabs(view, "What is live at the cursor", panels, done);
	place.append(tabs.element);
	tabs.show(0);
	timeline.render();
	return { device, view, timeline, table, holders, ruler, tabs, curves: charts(place, view, timeline) };
}

async function start(): Promise<void> {
	const data = document.getElementById("snapana-data"),
		text = data?.textContent;
	if (!text) return;
	const packed = await load(text),
		tables = new Tables(packed),
		live: Live[] = [];
	const show = (i: number) => {
		const place = document.getElementById(`gpu${packed.header.devices[i].ordinal}-live`);
		if (!place || live[i]) return;
		try {
			live[i] = mount(place, packed, tables, i, data.dataset.windows);
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
	};
	(globalThis as unknown as { snapana: unknown }).snapana = { live, packed };
	const open = devices(
		packed.header.devices.map(d => d.ordinal),
		show,
	);
	showButtons(packed, i => {
		open(i);
		return live[i];
	});
	for (const e of document.querySelectorAll<HTMLElement>(".scroll"))
		resized(e, () =>
			e.scrollWidth > e.clientWidth ? e.setAttribute("tabindex", "0") : e.removeAttribute("tabindex"),
		);
	document.documentElement.classList.add("ready");
}

start().catch(e => console.error("snapana:", e));
