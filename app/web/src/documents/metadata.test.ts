import { describe, expect, it } from "vitest";
import type { Metadata } from "../api/types";
import { type Condition, filterOf, inexact, metadataOf, type Row, rowsOf } from "./metadata";

const row = (key: string, kind: Row["kind"], value: string, id = 0): Row => ({ id, key, kind, value });

describe("fields as rows", () => {
  it.each<[string, Metadata]>([
    ["texts", { title: "Report", empty: "", spaces: "  x ", emoji: "😀", number: "2024", truth: "true" }],
    ["numbers", { year: 2025, share: 0.1, small: 1e-7, large: 1e21, below: -3 }],
    ["truths and nothing", { yes: true, no: false, none: null }],
    ["lists", { tags: ["a", "b c"], mixed: ["x", 1, true, null], none: [] }],
    [
      "lists of awkward texts",
      { list: ["a,b", 'say "x"', "2024", "true", "null", "", " y", "\\", "line\nbreak", "😀"] },
    ],
    ["awkward names", { constructor: "x", "a.b": 1 }],
  ])("go there and back: %s", (_, metadata) => {
    expect(metadataOf(rowsOf(metadata))).toEqual({ metadata });
  });

  it("keeps a field of the name of an object's own", () => {
    const read = metadataOf([row("__proto__", "text", "x")]);
    expect("metadata" in read && Object.entries(read.metadata)).toEqual([["__proto__", "x"]]);
  });

  it("reads a list as people write it", () => {
    expect(metadataOf([row("k", "list", ' red, 5 ,, "5", "a, b" , true ')])).toEqual({
      metadata: { k: ["red", 5, "5", "a, b", true] },
    });
  });

  it("says what is wrong", () => {
    expect(metadataOf([row(" ", "text", "x")])).toHaveProperty("wrong");
    expect(metadataOf([row("a", "text", "x"), row(" a ", "text", "y", 1)])).toHaveProperty("wrong");
    for (const text of ["", "x", "1,5", "0x10", "Infinity", "1e999"]) {
      expect(metadataOf([row("n", "number", text)])).toHaveProperty("wrong");
    }
    expect(metadataOf([row("l", "list", '"open')])).toHaveProperty("wrong");
    expect(metadataOf([row("l", "list", '"a" b')])).toHaveProperty("wrong");
  });

  it("knows numbers that would be written back as others", () => {
    expect(inexact({ a: 2 ** 53, b: 2 ** 53 - 1, c: [1, -(2 ** 53)], d: 0.1 })).toEqual(["a", "c"]);
  });
});

describe("conditions as a filter", () => {
  const condition = (field: string, how: Condition["how"], value = ""): Condition => ({ id: 1, field, how, value });

  it("is nothing until a condition is complete", () => {
    expect(filterOf([])).toBeNull();
    expect(filterOf([condition("year", "is"), condition("", "is", "x")])).toBeNull();
  });

  it("finds a field whether it holds a number or a text", () => {
    expect(filterOf([condition(" year ", "is", " 2024 ")])).toEqual({ year: { $in: ["2024", 2024] } });
    expect(filterOf([condition("lang", "isNot", "de")])).toEqual({ lang: { $nin: ["de"] } });
    expect(filterOf([condition("done", "is", "true")])).toEqual({ done: { $in: ["true", true] } });
  });

  it("compares numbers as numbers and days as texts", () => {
    expect(filterOf([condition("year", "atLeast", "2024")])).toEqual({ year: { $gte: 2024 } });
    expect(filterOf([condition("day", "atMost", "2024-05-01")])).toEqual({ day: { $lte: "2024-05-01" } });
  });

  it("asks for all of several", () => {
    expect(
      filterOf([condition("year", "atLeast", "1"), condition("year", "atMost", "2"), condition("x", "present")]),
    ).toEqual({
      $and: [{ year: { $gte: 1 } }, { year: { $lte: 2 } }, { x: { $ne: null } }],
    });
  });
});
