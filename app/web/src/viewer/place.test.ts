import { describe, expect, it } from "vitest";
import { addressOf, placeOf } from "./place";

describe("a place in an address", () => {
  it("is a document alone", () => {
    expect(placeOf("doc_1")).toEqual({ document: "doc_1", version: null, span: null, marks: [], page: null });
  });

  it("is a passage of a version", () => {
    const place = { document: "doc_1", version: 2, span: { start: 0, end: 90 }, marks: [], page: 4 };
    expect(addressOf(place)).toBe("#/documents/doc_1?version=2&start=0&end=90&page=4");
    expect(placeOf("doc_1?version=2&start=0&end=90&page=4")).toEqual(place);
  });

  it.each(["start=5&end=5", "start=9&end=5", "start=5", "start=-1&end=3", "start=x&end=9", "start=1e3&end=9999"])(
    "has no passage by %s",
    (query) => {
      expect(placeOf(`doc_1?${query}`).span).toBeNull();
    },
  );

  it("has no page or version 0", () => {
    expect(placeOf("doc_1?page=0&version=0")).toEqual({
      document: "doc_1",
      version: null,
      span: null,
      marks: [],
      page: null,
    });
  });

  it("keeps of what is marked the sentences of the passage, in order", () => {
    const place = {
      document: "doc_1",
      version: 2,
      span: { start: 10, end: 90 },
      marks: [
        { start: 10, end: 30 },
        { start: 60, end: 90 },
      ],
      page: null,
    };
    expect(addressOf(place)).toBe("#/documents/doc_1?version=2&start=10&end=90&mark=10-30&mark=60-90");
    expect(placeOf("doc_1?version=2&start=10&end=90&mark=10-30&mark=60-90")).toEqual(place);
  });

  it.each(["9-20", "60-91", "20-20", "30", "30-", "a-b", "20-1e2", "30-40-50x&mark=90-95"])(
    "marks nothing by %s",
    (mark) => {
      expect(placeOf(`doc_1?start=10&end=90&mark=${mark}`).marks).toEqual([]);
    },
  );

  it("marks nothing twice, and nothing without a passage", () => {
    expect(placeOf("doc_1?start=10&end=90&mark=20-40&mark=30-50&mark=20-40").marks).toEqual([{ start: 20, end: 40 }]);
    expect(placeOf("doc_1?mark=20-40").marks).toEqual([]);
    expect(placeOf(`doc_1?start=0&end=900${"&mark=1-2".repeat(5)}`).marks).toHaveLength(1);
  });
});
