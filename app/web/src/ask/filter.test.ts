import { expect, test } from "vitest";
import { asFilter, type Condition, listOf, valueTyped } from "./filter";
import { EVERYTHING, isEverything, scopeBody, toggled } from "./scope";

function row(field: string, operator: Condition["operator"], value = ""): Condition {
  return { id: 0, field, operator, value };
}

test("one row is one condition", () => {
  expect(asFilter({ match: "all", rows: [row("year", "gte", "2024")] })).toEqual({ year: { $gte: 2024 } });
});

test("several rows must all hold, or one of them", () => {
  const rows = [row("year", "gte", "2024"), row("lang", "eq", "de")];
  const parts = [{ year: { $gte: 2024 } }, { lang: { $eq: "de" } }];
  expect(asFilter({ match: "all", rows })).toEqual({ $and: parts });
  expect(asFilter({ match: "any", rows })).toEqual({ $or: parts });
});

test("lists, and whether a detail is there", () => {
  expect(asFilter({ match: "all", rows: [row("tag", "in", 'a, 2, "b, c"')] })).toEqual({
    tag: { $in: ["a", 2, "b, c"] },
  });
  expect(asFilter({ match: "all", rows: [row("tag", "present")] })).toEqual({ tag: { $ne: null } });
  expect(asFilter({ match: "all", rows: [row("tag", "absent")] })).toEqual({ tag: { $eq: null } });
});

test("rows that are not filled in are left out", () => {
  expect(asFilter({ match: "all", rows: [row("year", "gte", " "), row(" ", "eq", "x")] })).toBeNull();
});

test("values have JSON's types", () => {
  expect(["12", "-1.5", "true", "false", "1e3", "007", '"12"', "12345678901234567890", " x "].map(valueTyped)).toEqual([
    12,
    -1.5,
    true,
    false,
    "1e3",
    "007",
    "12",
    "12345678901234567890",
    "x",
  ]);
});

test("lists are cut at commas", () => {
  expect(listOf("a,, b ,")).toEqual(["a", "b"]);
});

test("a scope is told as it limits", () => {
  expect(scopeBody(EVERYTHING)).toEqual({});
  const one = { id: "col_1", name: "Reports" };
  const scope = { ...EVERYTHING, collections: toggled([], one) };
  expect(scopeBody(scope)).toEqual({ collection_ids: ["col_1"] });
  expect(isEverything(scope)).toBe(false);
  expect(toggled(scope.collections, one)).toEqual([]);
});
