import { expect, test } from "vitest";
import { nameOf } from "./download";

test("a file keeps the server's name", () => {
  expect(nameOf('attachment; filename="footnote-costs-20251101-20251201.csv"')).toBe(
    "footnote-costs-20251101-20251201.csv",
  );
  expect(nameOf(null)).toBeNull();
  expect(nameOf('attachment; filename="../x"')).toBeNull();
});
