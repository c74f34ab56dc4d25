import { expect, test } from "vitest";
import { stackOf } from "./stack";

const part = (start: number, group: string, amount: bigint) => ({ start, group, amount });

test("buckets nobody used are zero", () => {
  expect(stackOf([10, 20, 30], [part(10, "a", 1n), part(30, "a", 2n)])).toEqual([
    { group: "a", values: [1n, 0n, 2n], total: 3n, groups: 1 },
  ]);
});

test("parts of several reports are added up", () => {
  expect(stackOf([10], [part(10, "a", 1n), part(10, "a", 5n)])[0]?.total).toBe(6n);
});

test("the largest come first, and the rest are one, summed exactly", () => {
  const huge = 9_007_199_254_740_993n;
  const parts = ["a", "b", "c", "d"].map((group, place) => part(10, group, huge + BigInt(place)));
  const found = stackOf([10, 20], [...parts, part(20, "a", 1n)], { most: 2 });
  expect(found.map(({ group, groups }) => [group, groups])).toEqual([
    ["d", 1],
    ["c", 1],
    [null, 2],
  ]);
  expect(found[2]?.values).toEqual([2n * huge + 1n, 1n]);
  const every = found.reduce((sum, { total }) => sum + total, 0n);
  expect(every).toBe(4n * huge + 6n + 1n);
});

test("a rest of one is shown by its name", () => {
  expect(stackOf([10], [part(10, "a", 1n), part(10, "b", 2n), part(10, "c", 3n)], { most: 2 })).toHaveLength(3);
});

test("kinds keep their order, and those nobody used are left out", () => {
  const found = stackOf([10], [part(10, "output", 9n), part(10, "cached", 0n), part(10, "uncached", 1n)], {
    order: ["uncached", "cached", "output"],
  });
  expect(found.map(({ group }) => group)).toEqual(["uncached", "output"]);
});

test("groups of one size are in the order of their names, and corrections may be negative", () => {
  const found = stackOf([10], [part(10, "b", 1n), part(10, "a", 1n), part(10, "c", -5n)]);
  expect(found.map(({ group }) => group)).toEqual(["a", "b", "c"]);
  expect(found[2]?.values).toEqual([-5n]);
});
