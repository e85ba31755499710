// Buttons and links that lead from a finding to the timeline.

import { Packed } from "./data";
import { el } from "./dom";
import type { Live } from "./main";
import { grown } from "./picks";

/** Makes a button in each place that the page has for one. open shows a device. */
export function showButtons(packed: Packed, open: (i: number) => Live | undefined): void {
	const { devices } = packed.header;
	for (const place of document.querySelectorAll<HTMLElement>("[data-show]")) {
		const [kind, first, second] = place.dataset.show!.split(" "),
			n = Number(first);
		const holder = kind === "ghost" ? n + 1 : 0; // ghosts are the first rows of holders, behind the one of nobody
		const i = devices.findIndex(d => (holder ? packed.read(d.held.bytes)[holder] > 0 : d.ordinal === n));
		if (i < 0 || !document.getElementById(`gpu${devices[i].ordinal}-live`)) continue;
		place.append(
			el(
				"button",
				{
					type: "button",
					click: () => {
						const l = open(i);
						if (l) show(l, holder, Number(second));
					},
				},
				"Show in the timeline",
			),
		);
	}
	for (const link of document.querySelectorAll<HTMLElement>("[data-event]")) {
		const [ordinal, event] = link.dataset.event!.split(" ").map(Number),
			i = devices.findIndex(d => d.ordinal === ordinal);
		link.addEventListener("click", e => {
			const l = i < 0 ? undefined : open(i);
			if (!l) return;
			e.preventDefault();
			l.view.go(event);
			look(l);
		});
	}
}

function show(l: Live, holder: number, growth: number): void {
	const { view, device: d, tabs } = l;
	view.set({ x0: 0, x1: view.full(), lo: 0, hi: 0, mode: "bands", pinned: -1 });
	if (holder) {
		view.go(d.events - 1);
		l.holders!.choose(holder);
		tabs.open("Holders");
	} else {
		view.go(d.growth[growth].horizon);
		view.set({ pick: grown(d, growth) });
	}
	look(l);
}

/** Brings the timeline to the screen, or what stands in its place. */
export function look({ device: d, timeline, tabs }: Live): void {
	const at = d.events ? timeline.element : tabs.element;
	(at.previousElementSibling ?? at).scrollIntoView(); // the search, which says the sum
	at.querySelector<HTMLElement>("[tabindex='0']")!.focus({ preventScroll: true });
}
