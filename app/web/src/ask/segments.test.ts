import { expect, test } from "vitest";
import { pendingSegmentsOf, type Segment, segmentsOf, shownNumbers } from "./segments";

function joined(segments: Segment[]): string {
  return segments.map((one) => (one.kind === "text" ? one.text : `[${one.number}]`)).join("");
}

test("marks stand where code points say, also behind an emoji", () => {
  const answer = "Ships 🚢🚢 sail [2]. Done.";
  const start = Array.from("Ships 🚢🚢 sail ").length;
  const segments = segmentsOf(answer, [{ index: 2, answer_start: start, answer_end: start + 3 }]);
  expect(segments).toEqual([
    { kind: "text", text: "Ships 🚢🚢 sail ", uncited: false },
    { kind: "mark", number: 2, citation: 0 },
    { kind: "text", text: ". Done.", uncited: false },
  ]);
});

test("several marks in a row, given out of order", () => {
  const answer = "One [1][2].";
  const segments = segmentsOf(answer, [
    { index: 2, answer_start: 7, answer_end: 10 },
    { index: 1, answer_start: 4, answer_end: 7 },
  ]);
  expect(segments.filter((one) => one.kind === "mark")).toEqual([
    { kind: "mark", number: 1, citation: 1 },
    { kind: "mark", number: 2, citation: 0 },
  ]);
  expect(joined(segments)).toBe(answer);
});

test("uncited text is a piece of its own, in code points", () => {
  const answer = "😀 Sure. Maybe 🚀 so. End.";
  const start = Array.from("😀 Sure. ").length;
  const end = start + Array.from("Maybe 🚀 so.").length;
  const segments = segmentsOf(answer, [], [{ start, end }]);
  expect(segments).toEqual([
    { kind: "text", text: "😀 Sure. ", uncited: false },
    { kind: "text", text: "Maybe 🚀 so.", uncited: true },
    { kind: "text", text: " End.", uncited: false },
  ]);
});

test("a place outside of the answer or within another is left out", () => {
  const segments = segmentsOf("Short [1].", [
    { index: 1, answer_start: 6, answer_end: 9 },
    { index: 3, answer_start: 7, answer_end: 9 },
    { index: 2, answer_start: 90, answer_end: 93 },
  ]);
  expect(segments.filter((one) => one.kind === "mark")).toEqual([{ kind: "mark", number: 1, citation: 0 }]);
});

test("an empty answer has no pieces", () => {
  expect(segmentsOf("", [])).toEqual([]);
});

test("marks of an answer that is being written wait for their footnotes", () => {
  expect(pendingSegmentsOf("🚢 One [1] and [12] [x")).toEqual([
    { kind: "text", text: "🚢 One ", uncited: false },
    { kind: "mark", number: 1, citation: null },
    { kind: "text", text: " and ", uncited: false },
    { kind: "mark", number: 12, citation: null },
    { kind: "text", text: " [x", uncited: false },
  ]);
});

test("footnotes are numbered as they appear, whatever the model was given", () => {
  const numbers = shownNumbers(pendingSegmentsOf("Ships [8]. Boats [2][8]. Rafts [5]."));
  expect([...numbers]).toEqual([
    [8, 1],
    [2, 2],
    [5, 3],
  ]);
});
