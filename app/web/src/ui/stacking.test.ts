import { expect, test } from "vitest";
import { stacked, total } from "./stacking";

test("each series stands on those before it", () => {
  expect(
    stacked(
      [
        [1n, 2n, 0n],
        [10n, 0n, 5n],
      ],
      3,
      1n,
    ),
  ).toEqual([
    [1, 2, 0],
    [11, 2, 5],
  ]);
});

test("a column without a value is nothing", () => {
  expect(stacked([[1n], [2n, 3n]], 2, 1n)).toEqual([
    [1, 0],
    [3, 3],
  ]);
});

test("money is drawn in its own unit", () => {
  expect(stacked([[500_000_000_000n], [250_000_000_000n]], 1, 10n ** 12n)).toEqual([[0.5], [0.75]]);
});

test("totals are exact", () => {
  expect(total([9_007_199_254_740_993n, 1n])).toBe(9_007_199_254_740_994n);
  expect(total([])).toBe(0n);
});
