import { expect, test } from "vitest";
import { axisText, decimalOf, moneyText, ONE, sumOf, unitsOf } from "./money";

test("adds what floating point would not", () => {
  expect(decimalOf(unitsOf("0.1") + unitsOf("0.2"))).toBe("0.300000000000");
  expect(decimalOf(unitsOf("9007199254740993.000000000001") + unitsOf("0.000000000001"))).toBe(
    "9007199254740993.000000000002",
  );
});

test("reads and writes negative amounts, as corrections are", () => {
  expect(unitsOf("-0.5")).toBe(-ONE / 2n);
  expect(decimalOf(unitsOf("-0.000000000001"))).toBe("-0.000000000001");
  expect(decimalOf(0n)).toBe("0.000000000000");
});

test("a sum of nothing known is not known", () => {
  expect(sumOf([null, null])).toBeNull();
  expect(sumOf([null, "1.5", "2"])).toBe((7n * ONE) / 2n);
});

test("refuses what is no amount", () => {
  for (const wrong of ["", "1e3", "1.", ".5", "1,5", "0.0000000000001"]) expect(() => unitsOf(wrong)).toThrow();
});

test("shows small amounts with digits that say something", () => {
  expect(moneyText(unitsOf("12.345"), "usd", "en")).toBe("$12.35");
  expect(moneyText(unitsOf("0.5"), "usd", "en")).toBe("$0.50");
  expect(moneyText(unitsOf("0.000123"), "usd", "en")).toBe("$0.000123");
  expect(moneyText(unitsOf("-0.01"), "usd", "en")).toBe("-$0.01");
  expect(moneyText(unitsOf("0.000000000001"), "usd", "en")).toBe("$0.000000000001");
  expect(moneyText(0n, "usd", "en")).toBe("$0.00");
});

test("shows a currency the browser has no form for", () => {
  expect(moneyText(ONE, "credits", "en")).toBe("1.00 CREDITS");
});

test("the numbers of an axis have as many decimals as each other", () => {
  expect(axisText([0, 0.0002, 3 * 0.0002, 0.001, 0.0012], "usd", "en")).toEqual([
    "$0.0000",
    "$0.0002",
    "$0.0006",
    "$0.0010",
    "$0.0012",
  ]);
  expect(axisText([0, 0.5, 1], "usd", "en")).toEqual(["$0.0", "$0.5", "$1.0"]);
  expect(axisText([0, 1_000], "usd", "en")).toEqual(["$0", "$1,000"]);
  expect(axisText([0, 2], "credits", "en")).toEqual(["0 CREDITS", "2 CREDITS"]);
  expect(axisText([], "usd", "en")).toEqual([]);
});
