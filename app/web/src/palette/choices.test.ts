import { expect, test } from "vitest";
import { type Choice, fitting, moved } from "./choices";

function action(label: string): Choice {
  return { id: label, label, detail: null, run: () => {} };
}

test("an action fits when each typed word begins one of its words", () => {
  const actions = ["New conversation", "Add files", "Sign out"].map(action);
  const labels = (typed: string) => fitting(actions, typed).map(({ label }) => label);

  expect(labels("")).toEqual(["New conversation", "Add files", "Sign out"]);
  expect(labels(" CONV new")).toEqual(["New conversation"]);
  expect(labels("o")).toEqual(["Sign out"]);
  expect(labels("versation")).toEqual([]);
});

test("the arrows go round the ends, and nowhere in an empty list", () => {
  expect([moved(0, 1, 3), moved(2, 1, 3), moved(0, -1, 3), moved(0, 1, 0)]).toEqual([1, 0, 2, -1]);
});
