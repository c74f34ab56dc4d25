import { describe, expect, it } from "vitest";
import { pieces } from "./pieces";

describe("a text in pieces", () => {
  it("is whole where nothing is marked", () => {
    expect(pieces("All of it.", 100, [])).toEqual([{ text: "All of it.", marked: false }]);
    expect(pieces("", 100, [{ start: 100, end: 105 }])).toEqual([]);
  });

  it("counts marks from the beginning of the document, in code points", () => {
    const found = pieces("🚢 left. 🚢 sank. Nobody saw it.", 1_000, [
      { start: 1_000, end: 1_007 },
      { start: 1_008, end: 1_015 },
    ]);
    expect(found).toEqual([
      { text: "🚢 left.", marked: true },
      { text: " ", marked: false },
      { text: "🚢 sank.", marked: true },
      { text: " Nobody saw it.", marked: false },
    ]);
  });

  it("passes over what lies elsewhere", () => {
    const marks = [
      { start: 0, end: 5 },
      { start: 12, end: 15 },
      { start: 50, end: 60 },
    ];
    const found = pieces("abcdefghij", 10, marks);
    expect(found.filter(({ marked }) => marked)).toEqual([{ text: "cde", marked: true }]);
    expect(found.map(({ text }) => text).join("")).toBe("abcdefghij");
  });
});
