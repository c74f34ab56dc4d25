import { describe, expect, it } from "vitest";
import { onePerPage, type PageMarks } from "./usePassage";

function marksOn(page: number, ...tops: number[]): PageMarks {
  return { page, width: 600, height: 800, boxes: tops.map((top) => [10, top, 90, top + 12]) };
}

describe("what is marked on pages", () => {
  it("is put together where it stands on one", () => {
    expect(onePerPage([marksOn(3, 100, 120), marksOn(4, 20), marksOn(3, 300)])).toEqual([
      marksOn(3, 100, 120, 300),
      marksOn(4, 20),
    ]);
    expect(onePerPage([])).toEqual([]);
  });
});
