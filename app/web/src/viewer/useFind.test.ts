import { expect, test } from "vitest";
import type { Occurrence } from "../api/types";
import { beside, stepped } from "./useFind";

function hit(start: number): Occurrence {
  return { start_char: start, end_char: start + 2, page_start: null, page_end: null, snippet: "" };
}

test("next and previous go round the ends", () => {
  expect([stepped(0, 1, 3), stepped(2, 1, 3), stepped(0, -1, 3)]).toEqual([1, 0, 2]);
  expect(stepped(0, 1, 0)).toBe(0);
});

test("places near the one that is looked at are marked beside it", () => {
  const hits = Array.from({ length: 20 }, (_, at) => hit(10 * at));

  expect(beside(hits, 0).map(({ start }) => start)).toEqual([10, 20, 30, 40]);
  expect(beside(hits, 10).map(({ start }) => start)).toEqual([60, 70, 80, 90, 110, 120, 130, 140]);
  expect(beside([], 0)).toEqual([]);
});
