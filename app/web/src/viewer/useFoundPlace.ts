/** Where the place that is looked at, and those near it, stand on the pages of a PDF. */
import { useRef } from "react";
import { useBoxes, useBoxesOfEach } from "./queries";
import { beside, type Find, spanOf } from "./useFind";
import { onePerPage, type PageMarks } from "./usePassage";

export interface FoundPlace {
  marks: readonly PageMarks[];
  around: readonly PageMarks[];
  page: number | null;
  /** Whether it has no mark, as on a scan. */
  unmarked: boolean;
}

/** Null where nothing is searched for, or it is nowhere. Until a place is known the one before it stays. */
export function useFoundPlace(id: string, version: number | null, find: Find | undefined): FoundPlace | null {
  const current = find?.current ?? null;
  const boxes = useBoxes(id, version, current === null ? null : spanOf(current));
  const near = useBoxesOfEach(id, version, find === undefined ? [] : beside(find.hits, find.at));
  const before = useRef<FoundPlace | null>(null);
  if (current === null) {
    before.current = null;
  } else if (!boxes.isPending) {
    const marks = (boxes.data?.data ?? []).filter((page) => page.boxes.length > 0);
    before.current = {
      marks,
      around: onePerPage(near.flatMap(({ data }) => data?.data ?? [])),
      page: current.page_start,
      unmarked: marks.length === 0,
    };
  }
  return before.current;
}
