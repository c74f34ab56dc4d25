import { expect, test } from "vitest";
import { tokenIn } from "./invited";

test("a token is read from its link, and from nothing else", () => {
  expect(tokenIn("#/invitation/a-B_9")).toBe("a-B_9");
  for (const other of [
    "",
    "#/",
    "#/invitation/",
    "#/invitation/a/b",
    "#/invitation/a%20b",
    "#invitation/a",
    "#key=a",
  ]) {
    expect(tokenIn(other)).toBeNull();
  }
});
