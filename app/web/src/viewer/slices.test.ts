import { describe, expect, it } from "vitest";
import { firstSlice, sliceAfter, sliceBefore } from "./slices";

describe("slices of a text", () => {
  it("begin around the passage", () => {
    expect(firstSlice({ start: 10_000, end: 10_100 })).toEqual({ start: 8_000, end: 16_100 });
    expect(firstSlice({ start: 5, end: 9 }).start).toBe(0);
    expect(firstSlice(null)).toEqual({ start: 0, end: 8_000 });
  });

  it("go on without a gap to both ends", () => {
    let start = 30_000;
    for (let slice = sliceBefore(start); slice !== null; slice = sliceBefore(start)) {
      expect(slice.end).toBe(start);
      start = slice.start;
    }
    expect(start).toBe(0);
    let end = 30_000;
    for (let slice = sliceAfter(end, 50_001); slice !== null; slice = sliceAfter(end, 50_001)) {
      expect(slice.start).toBe(end);
      end = slice.end;
    }
    expect(end).toBe(50_001);
  });
});
