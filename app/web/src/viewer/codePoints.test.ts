import { describe, expect, it } from "vitest";
import { codePoints, parted, unitAt } from "./codePoints";

describe("code points", () => {
  it("are counted, not units", () => {
    expect(codePoints("a😀b")).toBe(3);
    expect(codePoints("👩‍🔬")).toBe(3); // a woman, a joiner, a microscope
    expect(codePoints("")).toBe(0);
  });

  it("are found in units", () => {
    expect([0, 1, 2, 3].map((offset) => unitAt("a😀b", offset))).toEqual([0, 1, 3, 4]);
    expect(unitAt("a😀b", 99)).toBe(4);
  });

  it("part a text", () => {
    expect(parted("a😀bc", 1, 3)).toEqual(["a", "😀b", "c"]);
    expect(parted("abc", 0, 3)).toEqual(["", "abc", ""]);
    expect(parted("abc", -5, 1)).toEqual(["", "a", "bc"]);
    expect(parted("abc", 2, 99)).toEqual(["ab", "c", ""]);
    expect(parted("abc", 9, 12)).toEqual(["abc", "", ""]);
  });
});
