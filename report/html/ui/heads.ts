// Heads of a table that sort it.

import { el } from "./dom";

interface Order<K> {
	sort: K;
	down: boolean;
}

/** Makes the head of a column; a click on it asks for another order. */
export function heads<K extends string>(
	by: Order<K>,
	order: (next: Order<K>) => void,
): (key: K, text: string, name?: "n" | "n c" | "") => HTMLElement {
	return (key, text, name = "n") => {
		const on = by.sort === key;
		return el(
			"th",
			{
				scope: "col",
				class: name,
				"aria-sort": on ? (by.down ? "descending" : "ascending") : undefined,
			},
			el(
				"button",
				{
					type: "button",
					class: "link",
					click: () => order({ sort: key, down: on ? !by.down : name !== "" }),
				},
				text + (on ? (by.down ? " ↓" : " ↑") : ""),
			),
		);
	};
}
