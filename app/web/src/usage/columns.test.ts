import { expect, test } from "vitest";
import { colorsOf } from "./colors";
import { columnsOf, seriesOf } from "./columns";
import { stackOf } from "./stack";

const at = (text: string) => Date.parse(text) / 1000;

test("columns are named on the zone's clock", () => {
  const [day] = columnsOf([at("2025-11-19T23:00:00Z")], "1d", "Europe/Berlin", "en-GB");
  expect(day?.short).toBe("20 Nov");
  const [month] = columnsOf([at("2025-10-31T23:00:00Z")], "1mo", "Europe/Berlin", "en-GB");
  expect(month?.label).toBe("November 2025");
});

test("an hour that comes twice is told apart", () => {
  const [first, second] = columnsOf([at("2025-10-26T00:00:00Z"), at("2025-10-26T01:00:00Z")], "1h", "Europe/Berlin");
  expect(first?.label).not.toBe(second?.label);
});

test("the rest has a name of its own", () => {
  const parts = ["a", "b", "c"].map((group) => ({ start: 1, group, amount: 1n }));
  const stack = stackOf([1], parts, { most: 1 });
  const series = seriesOf(stack, (group) => group.toUpperCase(), colorsOf(stack));
  expect(series.map(({ label, color }) => [label, color])).toEqual([
    ["A", "--c1"],
    ["2 others", "--c5"],
  ]);
});
