// With several devices, one is shown at a time.

import { el } from "./dom";

/** Calls show for the devices that are looked at; with several it makes tabs of their sections. It
 * gives what shows another one. */
export function devices(ordinals: number[], show: (i: number) => void): (i: number) => void {
	const sections = ordinals.map(o => document.getElementById("gpu" + o));
	const there = sections.map((s, i) => (s ? i : -1)).filter(i => i >= 0);
	if (there.length < 2) {
		there.forEach(show);
		return show;
	}
	const buttons = new Map<number, HTMLButtonElement>();
	const open = (i: number) => {
		for (const k of there) {
			sections[k]!.hidden = k !== i;
			sections[k]!.querySelector<HTMLDetailsElement>("details.fold")?.setAttribute("open", "");
			buttons.get(k)!.setAttribute("aria-pressed", String(k === i));
		}
		show(i);
	};
	const bar = el("nav", { class: "card devices", "aria-label": "Devices" });
	for (const k of there) {
		const b = el("button", { type: "button", click: () => open(k) }, `GPU ${ordinals[k]}`);
		buttons.set(k, b);
		bar.append(b);
	}
	sections[there[0]]!.before(bar);
	const named = () =>
		there.find(k => location.hash === "#gpu" + ordinals[k] || location.hash.startsWith(`#gpu${ordinals[k]}-`));
	addEventListener("hashchange", () => {
		const k = named();
		if (k !== undefined) open(k);
	});
	open(named() ?? there.find(k => !sections[k]!.querySelector("details.fold")) ?? there[0]);
	return open;
}
