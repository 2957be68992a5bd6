/** Numbers and types as people read them: three significant digits, units, grouped digits. */
import type { ProgramState, Output } from "../wire/messages.js";

const GROUP = "\u00a0";

/** 12400 -> "12 400". */
export function whole(value: number): string {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, GROUP);
}

/** Three significant digits: 1243.7 -> "1 240", 0.01234 -> "0.0123". */
export function significant(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  if (value === 0) return "0";
  const rounded = Number(value.toPrecision(3));
  if (Math.abs(rounded) >= 100) return whole(rounded);
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(rounded))));
  return rounded.toFixed(Math.min(digits, 9));
}

export function rate(perSecond: number): string {
  return `${significant(perSecond)}${GROUP}steps/s`;
}

/** Seconds -> "3.21 ms". */
export function duration(seconds: number): string {
  const units: readonly [number, string][] = [[1, "s"], [1e-3, "ms"], [1e-6, "\u00b5s"], [1e-9, "ns"]];
  // 0.9996 ms would round to "1 000 us", so the limit lies a little below the unit.
  const [size, unit] = units.find(([unitSize]) => Math.abs(seconds) >= unitSize * 0.9995) ?? [1e-9, "ns"];
  return `${significant(seconds / size)}${GROUP}${unit}`;
}

/** Seconds -> "0:41" or "1:02:03". */
export function clock(seconds: number): string {
  const total = Math.max(0, Math.round(seconds));
  const two = (n: number): string => String(n).padStart(2, "0");
  const minutes = Math.floor(total / 60) % 60;
  const hours = Math.floor(total / 3600);
  return hours > 0 ? `${hours}:${two(minutes)}:${two(total % 60)}` : `${minutes}:${two(total % 60)}`;
}

/** "float32[?,784]"; "float32[...]" where the rank is not known. */
export function typeText(output: Output): string {
  if (output.shape === null) return `${output.dtype}[...]`;
  return `${output.dtype}[${output.shape.map((n) => n ?? "?").join(",")}]`;
}

export function plural(count: number, one: string): string {
  return `${whole(count)}${GROUP}${count === 1 ? one : `${one}s`}`;
}

/** Bytes of an element, by dtype. */
const ELEMENT_BYTES: Readonly<Record<string, number>> = {
  float64: 8, int64: 8, uint64: 8, complex64: 8, complex128: 16, float32: 4, int32: 4, uint32: 4, float16: 2, bfloat16: 2, int16: 2, uint16: 2,
};

/** Bytes of a tensor; null where a dimension or the rank is not known. */
export function bytesOf({ dtype, shape }: Output): number | null {
  return shape === null || shape.includes(null) ? null : leastBytes({ dtype, shape });
}

/** Bytes of one row of a tensor, for the widths of lines: an unknown dimension counts as one, an unknown rank as a number. */
export function leastBytes({ dtype, shape }: Output): number {
  return (shape ?? []).reduce((product: number, n) => product * (n ?? 1), ELEMENT_BYTES[dtype] ?? 1);
}

/** 0.634 -> "63 %"; small shares have three digits at most: "0.4 %", "< 0.1 %". */
export function shareText(share: number): string {
  const percent = 100 * share;
  if (percent === 0) return `0${GROUP}%`;
  if (percent < 0.1) return `<${GROUP}0.1${GROUP}%`;
  return `${percent < 9.95 ? Number(percent.toFixed(1)) : Math.round(percent)}${GROUP}%`;
}

/** "just now", "12 s old", "3 min old"; "" for what has no age. */
export function ageText(age_s: number): string {
  if (age_s < 0) return "";
  if (age_s < 2) return "just now";
  const [size, unit] = age_s < 120 ? [1, "s"] : age_s < 7200 ? [60, "min"] : [3600, "h"];
  return `${Math.floor(age_s / size)}${GROUP}${unit} old`;
}

/** What figures of a program were made of: "median of 12 steps of train, 3 s old, without the first". */
export function basisText({ basis, steps, name }: ProgramState, age_s: number): string {
  const of = name === "" ? "" : ` of ${name}`;
  const made = {
    median: `median of ${plural(steps, "step")}${of}`, first: `the first recorded step${of}`,
    parts: `${plural(steps, "part")} of long or failed steps${of}`, mean: `mean of ${plural(steps, "step")}${of}`,
  }[basis];
  return [made, ageText(age_s), basis === "median" ? "without the first" : ""].filter((part) => part !== "").join(", ");
}
