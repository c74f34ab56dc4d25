import { expect, test } from "vitest";
import { limitOf, NEW_TERMS, termsOf, thresholdsOf } from "./terms";

test("tokens are a number, and money stays a decimal string", () => {
  expect(limitOf("1 000 000", "tokens")).toBe(1_000_000);
  expect(limitOf(" 25.50 ", "cost")).toBe("25.50");
  expect(limitOf("0.100000000001", "cost")).toBe("0.100000000001");
});

test("what could be read in two ways is refused", () => {
  for (const wrong of ["1.000", "1,000", "", "-1", "1e6"]) expect(() => limitOf(wrong, "tokens")).toThrow();
  for (const wrong of ["25,50", "", "-1", "1e6", ".5", "1."]) expect(() => limitOf(wrong, "cost")).toThrow();
});

test("thresholds are whole percentages", () => {
  expect(thresholdsOf("80, 100")).toEqual([80, 100]);
  expect(thresholdsOf("80% 100 %")).toEqual([80, 100]);
  expect(thresholdsOf("")).toEqual([]);
  for (const wrong of ["0", "1001", "a", "8.5"]) expect(() => thresholdsOf(wrong)).toThrow();
});

test("a form is what the API takes", () => {
  expect(termsOf({ ...NEW_TERMS, limit: "5" })).toEqual({
    unit: "tokens",
    limit: 5,
    period: "month",
    tz: null,
    enforcement: "hard",
    thresholds: [80, 100],
    webhook_url: "",
  });
});
