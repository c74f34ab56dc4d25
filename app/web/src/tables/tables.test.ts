import { expect, test } from "vitest";
import type { Collection } from "../api/types";
import { EVERYTHING } from "../ask/scope";
import { documentsIn, handedOver, nameOf } from "./tables";

const COLLECTIONS = [
  { id: "col_1", documents: 3 },
  { id: "col_2", documents: 4 },
] as Collection[];
const FIRST = { id: "col_1", name: "contracts" };
const TERMS = { id: "doc_1", name: "terms.md" };

test("a table is called by its first columns, as far as there is room", () => {
  const called = (...names: string[]) => nameOf({ questions: names.map((name) => ({ name, question: `${name}?` })) });
  const long = "Which law governs the agreement, and which courts decide about it?";

  expect(called("Law", "Term", "Fee")).toBe("Law · Term · Fee");
  expect(called("Law", long, "Fee")).toBe("Law · 2 more");
  expect(called(long)).toBe(long);
  expect(called(long, "Fee")).toBe(`${long} · 1 more`);
});

test("the documents of a scope are counted where that can be known here", () => {
  const conditions = { ...EVERYTHING.conditions, rows: [{ id: 1, field: "year", operator: "eq", value: "2026" }] };
  const narrowed = { ...EVERYTHING, conditions } as typeof EVERYTHING;

  expect(documentsIn(EVERYTHING, COLLECTIONS)).toBe(7);
  expect(documentsIn(EVERYTHING, [])).toBeNull();
  expect(documentsIn({ ...EVERYTHING, collections: [FIRST] }, COLLECTIONS)).toBe(3);
  expect(documentsIn({ ...EVERYTHING, documents: [TERMS] }, COLLECTIONS)).toBe(1);
  expect(documentsIn({ ...EVERYTHING, collections: [FIRST], documents: [TERMS] }, COLLECTIONS)).toBeNull();
  expect(documentsIn(narrowed, COLLECTIONS)).toBeNull();
});

test("another screen hands over documents, or nothing", () => {
  expect(handedOver(null)).toBeNull();
  expect(handedOver({ key: "of the browser's" })).toBeNull();
  expect(handedOver({ scope: { documents: [TERMS] } })).toEqual({ ...EVERYTHING, documents: [TERMS] });
});
