import { expect, test } from "vitest";
import { inSeenOrder } from "./seenOrder";

const asked = (...questions: string[]) => questions.map((question) => ({ question }));

test("questions stay where they were shown, and new ones come below", () => {
  expect(inSeenOrder([], asked("b", "a"))).toEqual(asked("b", "a"));
  expect(inSeenOrder(asked("about"), asked("fact", "about"))).toEqual(asked("about", "fact"));
  expect(inSeenOrder(asked("about", "fact"), asked("fact", "other", "about"))).toEqual(asked("about", "fact", "other"));
});

test("a question that is not offered any more is gone", () => {
  expect(inSeenOrder(asked("about", "one"), asked("one", "two", "three"))).toEqual(asked("one", "two", "three"));
});
