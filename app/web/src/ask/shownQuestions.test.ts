import { expect, test } from "vitest";
import { withNew } from "./shownQuestions";

const asked = (...questions: string[]) => questions.map((question) => ({ question }));

test("questions stay where they are shown, and new ones come below", () => {
  expect(withNew([], asked("b", "a"))).toEqual(asked("b", "a"));
  expect(withNew(asked("about"), asked("fact", "about"))).toEqual(asked("about", "fact"));
  expect(withNew(asked("about", "fact"), asked("fact", "other", "about"))).toEqual(asked("about", "fact", "other"));
});

test("a question that gave way to others stays while it is looked at", () => {
  expect(withNew(asked("about", "one"), asked("one", "two", "three"))).toEqual(asked("about", "one", "two", "three"));
});
