// The contents of the page: of several devices they list the parts of the one that is shown, they mark the part that is
// read, and open what is folded.

import { Devices } from "./devices";

/** How far below the upper edge a part begins that is read already, in pixels. */
const reading = 96;

export function contents(devices: Devices, ordinals: number[]): void {
	const nav = document.querySelector<HTMLElement>(".toc");
	if (!nav) return;
	const entries = [...nav.querySelectorAll("a")].map(link => ({
		link,
		part: document.getElementById(link.hash.slice(1))!,
	}));
	const unfold = (part: Element | null | undefined) => {
		if (part instanceof HTMLDetailsElement) part.open = true;
	};
	for (const { link, part } of entries) link.addEventListener("click", () => unfold(part));
	const named = () => unfold(document.getElementById(location.hash.slice(1)));
	addEventListener("hashchange", named);
	named();

	const group = () => {
		for (const of of nav.querySelectorAll<HTMLElement>("[data-of]"))
			of.classList.toggle("shown", of.dataset.of === `gpu${ordinals[devices.shown]}`);
	};
	devices.listen(group);
	group();

	let current: HTMLElement | null = null;
	const mark = () => {
		const there = entries.filter(e => e.link.offsetParent && e.part.getClientRects().length);
		const ended = innerHeight + scrollY >= document.documentElement.scrollHeight - 2 && scrollY > 0;
		const read = there.filter(e => e.part.getBoundingClientRect().top <= reading);
		const link = (ended ? there.at(-1) : (read.at(-1) ?? there[0]))?.link ?? null;
		if (link === current) return;
		current?.removeAttribute("aria-current");
		link?.setAttribute("aria-current", "location");
		current = link;
		if (link) nav.scrollTo({ left: link.offsetLeft - (nav.clientWidth - link.offsetWidth) / 2 });
	};
	let asked = false;
	const soon = () => {
		if (asked) return;
		asked = true;
		requestAnimationFrame(() => {
			asked = false;
			mark();
		});
	};
	addEventListener("scroll", soon, { passive: true });
	new ResizeObserver(soon).observe(document.body);
	devices.listen(soon);
	mark();
}
