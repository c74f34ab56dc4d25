import { expect, test } from "vitest";
import { momentText } from "../ui/numbers";
import { linesOf, withNames } from "./auditDetail";

test("what is inside is named with what it is in, and nothing is left out but nothing", () => {
  expect(
    linesOf({
      name: "ci",
      difference_pico: 194_900_000,
      collections: null,
      after: { unit: "cost", limit_value: 20_000_000_000, webhook: "" },
    }),
  ).toEqual([
    { name: "name", text: "ci" },
    { name: "difference", text: "0.0001949" },
    { name: "after, unit", text: "cost" },
    { name: "after, limit value", text: "0.02" },
  ]);
});

test("moments are moments, lists have commas, and false is said", () => {
  expect(linesOf({ effective_from: 1_793_098_932.1, thresholds: [80, 100], disabled: false, tokens_to: 5 })).toEqual([
    { name: "effective from", text: momentText(1_793_098_932.1) },
    { name: "thresholds", text: "80, 100" },
    { name: "disabled", text: "false" },
    { name: "tokens to", text: "5" },
  ]);
});

test("ids are left out, also inside, and collections have names", () => {
  const names = new Map([["col_1", "papers"]]);
  expect(
    withNames({ user_id: "u", after: { user_id: "u", role: "reader", collections: ["col_1", "col_2"] } }, names),
  ).toEqual({ after: { role: "reader", collections: ["papers", "col_2"] } });
});
