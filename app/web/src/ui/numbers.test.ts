import { expect, test } from "vitest";
import { percentText } from "./numbers";

test("only all of it is 100 %", () => {
  expect([0, 0.004, 0.5, 0.996, 1].map(percentText)).toEqual(["0%", "0%", "50%", "99%", "100%"]);
});
