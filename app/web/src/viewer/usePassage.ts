/** Where a passage is printed, and which sentences of it matter most. */
import type { Boxes } from "../api/types";
import type { Span } from "./place";
import { useBoxes, useBoxesOfEach } from "./queries";

/** Where words stand on one page. */
export type PageMarks = Boxes["data"][number];

export interface FoundPassage {
  /** Page by page what is marked; `undefined` until that is known, or where there is no passage. */
  marks: readonly PageMarks[] | undefined;
  /** The passage around what is marked; `undefined` where all of it is. */
  around: readonly PageMarks[] | undefined;
  /** The share of the passage's words that stand on the pages. */
  coverage: number;
  /** Whether it was looked for, with or without success. */
  known: boolean;
}

/** Where the passage stands: the sentences of it that matter most, where there are any and they are found. */
export function usePassage(
  id: string,
  version: number | null,
  span: Span | null,
  marks: readonly Span[],
): FoundPassage {
  const whole = useBoxes(id, version, span);
  const parts = useBoxesOfEach(id, version, marks);
  const coverage = whole.data?.coverage ?? 0;
  const known = !whole.isPending && parts.every((part) => !part.isPending);
  // What is shown at first must not move when the rest becomes known.
  if (!known) return { marks: undefined, around: undefined, coverage, known };
  const nearest = parts.flatMap((part) => part.data?.data ?? []).filter(({ boxes }) => boxes.length > 0);
  if (nearest.length === 0) return { marks: whole.data?.data, around: undefined, coverage, known };
  return { marks: onePerPage(nearest), around: whole.data?.data, coverage, known };
}

/** What stands on one page together. */
export function onePerPage(found: readonly PageMarks[]): PageMarks[] {
  const pages = new Map<number, PageMarks>();
  for (const marks of found) {
    const before = pages.get(marks.page);
    pages.set(marks.page, before === undefined ? marks : { ...before, boxes: [...before.boxes, ...marks.boxes] });
  }
  return [...pages.values()];
}
