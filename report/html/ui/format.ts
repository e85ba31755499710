// Sizes, counts and times for people, as snapana/analyze/units prints them.

const suffixes = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/** Three digits; of two that are as near, the even one, as Go prints it. */
function digits(v: number): string {
	const n = v < 9.995 ? 2 : v < 99.95 ? 1 : 0,
		x = v * 10 ** n;
	return (x % 2 === 0.5 ? Math.floor(x) / 10 ** n : v).toFixed(n);
}

/** Prints a number of bytes: "512 B", "1.50 KiB". */
export function bytes(n: number): string {
	const sign = n < 0 ? "-" : "";
	let v = Math.abs(n);
	if (v < 1024) return `${sign}${Math.round(v)} B`;
	let i = 0;
	while (v >= 1024 && i < suffixes.length - 1) {
		v /= 1024;
		i++;
	}
	let s = digits(v);
	if (s === "1024" && i < suffixes.length - 1) {
		s = "1.00";
		i++;
	}
	return `${sign}${s} ${suffixes[i]}`;
}

/** Prints bytes with a sign, for differences. */
export function change(n: number): string {
	return (n > 0 ? "+" : "") + bytes(n);
}

/** Prints a count with narrow spaces between groups of three digits. */
export function count(n: number): string {
	return String(n).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** Prints a span of microseconds. */
export function micros(us: number): string {
	us = Math.round(us);
	if (us < 1000) return `${us} µs`;
	if (us < 1e6) return digits(us / 1e3) + " ms";
	if (us < 60e6) return digits(us / 1e6) + " s";
	const s = Math.round(us / 1e6);
	const h = Math.floor(s / 3600),
		m = Math.floor((s % 3600) / 60);
	return (h ? h + "h" : "") + m + "m" + (s % 60) + "s";
}

/** Prints a part of a whole. */
export function percent(part: number, whole: number): string {
	if (whole === 0) return "-";
	const p = (100 * part) / whole;
	return p !== 0 && Math.abs(p) < 9.95 ? p.toFixed(1) + "%" : p.toFixed(0) + "%";
}

export function plural(n: number, one: string, many = one + "s"): string {
	return n === 1 ? `1 ${one}` : `${count(n)} ${many}`;
}

/** Round values for an axis of bytes: at most n steps below limit. */
export function byteTicks(limit: number, n: number): number[] {
	let step = 1;
	while (limit / step > n) step *= 2;
	const out = [];
	for (let v = 0; v <= limit; v += step) out.push(v);
	return out;
}

/** Round values of a linear axis between lo and hi: at most about n. */
export function ticks(lo: number, hi: number, n: number): number[] {
	const raw = Math.max((hi - lo) / n, 1e-9);
	const base = 10 ** Math.floor(Math.log10(raw));
	const step = Math.max([1, 2, 5, 10].find(k => k * base >= raw)! * base, 1);
	const out = [];
	for (let v = Math.ceil(lo / step) * step; v <= hi; v += step) out.push(v);
	return out;
}
