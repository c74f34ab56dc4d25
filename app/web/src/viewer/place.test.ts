import { describe, expect, it } from "vitest";
import { addressOf, placeOf } from "./place";

describe("a place in an address", () => {
  it("is a document alone", () => {
    expect(placeOf("doc_1")).toEqual({ document: "doc_1", version: null, span: null, page: null });
  });

  it("is a passage of a version", () => {
    const place = { document: "doc_1", version: 2, span: { start: 0, end: 90 }, page: 4 };
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
    expect(placeOf("doc_1?page=0&version=0")).toEqual({ document: "doc_1", version: null, span: null, page: null });
  });
});
