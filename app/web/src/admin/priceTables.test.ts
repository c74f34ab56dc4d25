import { expect, test } from "vitest";
import type { Price } from "../api/types";
import { priceTables, withoutPrice } from "./priceTables";

const NOW = 1000;

function price(model: string, meter: string, from: number, to: number | null = null): Price {
  return {
    id: `${model}-${meter}-${from}`,
    object: "price",
    model,
    meter,
    price_per_million: "1.000000",
    currency: "usd",
    effective_from: from,
    effective_to: to,
    source: "",
    created_by: "ada",
    created_at: from,
  };
}

test("each model has one table with all of its kinds", () => {
  const prices = [
    price("b", "output", 10),
    price("a", "embedding", 10),
    price("b", "input", 5, 50),
    price("b", "input", 50),
  ];
  const [first, second] = priceTables(prices, NOW, false);

  expect([first?.model, first?.rows.map(({ meter }) => meter)]).toEqual(["a", ["embedding"]]);
  expect(second?.rows.map(({ meter, price }) => [meter, price?.effective_from ?? null])).toEqual([
    ["input", 50],
    ["input", 5],
    ["cached_input", null],
    ["output", 10],
  ]);
});

test("only prices in force are shown where that is chosen, and what has none says so", () => {
  const prices = [price("b", "output", 10, 20), price("b", "input", 5, 50), price("b", "input", 50)];
  const [table] = priceTables(prices, NOW, true);

  expect(table?.rows.map(({ meter, price }) => [meter, price?.effective_from ?? null])).toEqual([
    ["input", 50],
    ["cached_input", null],
    ["output", null],
  ]);
});

test("models that were used and have no price are named", () => {
  const unpriced = new Map([
    ["priced since", 3],
    ["never", 2],
    ["ended", 9],
    ["free of it", 0],
  ]);
  const prices = [price("priced since", "input", 10), price("ended", "input", 10, 20)];

  expect(withoutPrice(unpriced, prices, NOW)).toEqual([
    ["ended", 9],
    ["never", 2],
  ]);
});
