import { expect, test } from "vitest";
import type { WholeConversation } from "../api/types";
import { verdictOf } from "../ui/verdict";
import { commented, pressed, withFeedback } from "./feedback";

const GOOD = { score: 1, comment: null };
const BAD = { score: -1, comment: null };

test("a button says its verdict, and pressed again takes it back", () => {
  expect(pressed(null, "good")).toEqual(GOOD);
  expect(pressed(GOOD, "good")).toBeNull();
  expect(pressed({ score: -0.3, comment: "Half of it." }, "bad")).toBeNull();
});

test("the other button says the other verdict, without the comment on the first", () => {
  expect(pressed({ score: -1, comment: "Wrong year." }, "good")).toEqual(GOOD);
  expect(pressed(GOOD, "bad")).toEqual(BAD);
  expect(pressed({ score: 0, comment: null }, "bad")).toEqual(BAD);
});

test("a comment leaves the score, and a blank one is none", () => {
  expect(commented({ score: -0.5, comment: null }, " Wrong year.\n")).toEqual({ score: -0.5, comment: "Wrong year." });
  expect(commented({ score: -1, comment: "Wrong year." }, " \n")).toEqual(BAD);
});

test("what is said is told of its answer alone", () => {
  const turns = [
    { request_id: "req_1", feedback: null },
    { request_id: "req_2", feedback: GOOD },
  ];
  const kept = { id: "conv_1", data: turns } as unknown as WholeConversation;
  const after = withFeedback(kept, "req_1", BAD);
  expect(after.data.map(({ feedback }) => feedback)).toEqual([BAD, GOOD]);
  expect(after.data[1]).toBe(kept.data[1]);
  expect(withFeedback(after, "req_2", null).data.map(({ feedback }) => feedback)).toEqual([BAD, null]);
});

test("a score is good above 0 and bad below", () => {
  expect([1, 0.1, 0, -0.1, -1].map(verdictOf)).toEqual(["good", "good", "neutral", "bad", "bad"]);
});
