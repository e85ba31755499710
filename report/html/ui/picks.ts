// Allocations that a holder has or a finding counts, to look at beside those of a search.

import { title } from "./holders";
import { Device } from "./model";

export interface Pick {
	/** What it is in a link. */
	key: string;
	name: string;
	has: (row: number) => boolean;
}

/** What a row of Tables.holders has, or gone. */
export function held(d: Device, holder: number): Pick {
	return { key: `holder-${holder}`, name: title(d, holder), has: row => d.holder[row] === holder };
}

/** The allocations that a finding on growth counts. */
export function grown(d: Device, growth: number): Pick {
	const g = d.growth[growth],
		stacks = new Set(g.stacks);
	return {
		key: `growth-${growth}`,
		name: "what grows",
		has: row =>
			stacks.has(d.stackOf(row)) &&
			d.lives.born[row] >= 0 &&
			d.lives.born[row] <= g.horizon &&
			d.asked[row] > g.horizon,
	};
}

/** What a key means in this page, null for nothing. */
export function pickOf(d: Device, key: string): Pick | null {
	const [, kind, number] = /^(holder|growth)-(-?\d{1,9})$/.exec(key) ?? [],
		n = Number(number);
	if (kind === "holder" && d.held.bytes.length && n >= -2 && n < d.tables.holders.length) return held(d, n);
	return kind === "growth" && d.growth[n] ? grown(d, n) : null;
}
