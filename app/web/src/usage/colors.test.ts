import { expect, test } from "vitest";
import { colorOf, colorsOf } from "./colors";

const series = (...groups: (string | null)[]) => groups.map((group) => ({ group, values: [], total: 0n, groups: 1 }));

test("a group has one colour in both charts", () => {
  const first = colorsOf(series("a", "b", "c", null));
  const second = colorsOf(series("c", "x", "a", null), first);
  expect(second.get("a")).toBe(first.get("a"));
  expect(second.get("c")).toBe(first.get("c"));
  expect([...new Set(second.values())]).toHaveLength(3);
  expect(colorOf(second, null)).toBe("--c5");
});

test("no group beside a rest has the colour of the rest", () => {
  const six = colorsOf(series("a", "b", "c", "d", "e", "f"));
  expect(six.get("f")).toBe("--c5");
  const second = colorsOf(series("f", "a", "g", "h", "i", null), six);
  expect([...second.values()]).not.toContain("--c5");
  expect(new Set(second.values()).size).toBe(5);
});
