/** Long texts are read in slices: what is around a passage first, more when it is asked for. */
import type { Span } from "./place";

const BEFORE = 2_000;
const AFTER = 6_000;
const MORE = 12_000;

/** What is read first: the passage and what is around it, or the beginning. */
export function firstSlice(span: Span | null): Span {
  if (span === null) return { start: 0, end: BEFORE + AFTER };
  return { start: Math.max(0, span.start - BEFORE), end: span.end + AFTER };
}

/** Where a place that was searched for is read: places near each other are in one slice, so that it is read once. */
export function sliceOf({ start }: Span): Span {
  const from = start - (start % AFTER);
  return { start: from, end: from + AFTER };
}

/** What comes before the slice that starts at `start`; `null` at the beginning. */
export function sliceBefore(start: number): Span | null {
  return start <= 0 ? null : { start: Math.max(0, start - MORE), end: start };
}

/** What comes after the slice that ends at `end`, of `total` characters; `null` at the end. */
export function sliceAfter(end: number, total: number): Span | null {
  return end >= total ? null : { start: end, end: Math.min(total, end + MORE) };
}
