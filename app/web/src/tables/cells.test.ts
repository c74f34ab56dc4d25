import { expect, test } from "vitest";
import type { AnswerTablePage, TableAnswer, TableCell } from "../api/types";
import { beginningOf, cellText, doneOf, footnotesOf, isFilling, isSettled, nextOf, standingOfCell } from "./cells";

const QUOTED = "**12,186 thousand** [2], 2018\n\n> Sales of 😀 [9] were 12,186 in 2018. [2]\n> In thousands. [4]";

function cited(index: number, at: number) {
  return { index, answer_start: at, answer_end: at + 3 };
}

/** An answer with a footnote at each `[n]` that is named, from its end where it says so more than once. */
function answer(text: string, marks: readonly [number, number][], value: string | null = null): TableAnswer {
  return { answer: text, value, citations: marks.map(([index, at]) => cited(index, at)) } as unknown as TableAnswer;
}

function pointsBefore(text: string, found: string, from = 0): number {
  return Array.from(text.slice(0, text.indexOf(found, from))).length;
}

const MARKED = answer(
  QUOTED,
  [
    [2, pointsBefore(QUOTED, "[2]")],
    [2, pointsBefore(QUOTED, "[2]", 30)],
    [4, pointsBefore(QUOTED, "[4]")],
  ],
  "12,186 thousand",
);

test("the lead and what follows have no marks; a number in brackets of the document's own stays", () => {
  expect(cellText(MARKED)).toEqual({
    lead: "12,186 thousand, 2018",
    rest: "Sales of 😀 [9] were 12,186 in 2018.\nIn thousands.",
  });
});

test("what only repeats the lead is not said twice", () => {
  expect(
    cellText(
      answer(
        "**May 2023** [1]\n\n> May 2023 [1]",
        [
          [1, 13],
          [1, 29],
        ],
        "May 2023",
      ),
    ),
  ).toEqual({
    lead: "May 2023",
    rest: "",
  });
});

test("without a lead all of it is the text", () => {
  expect(cellText(answer("> It is **blue**. [1]\n\n> Or green.", [[1, 18]]))).toEqual({
    lead: "",
    rest: "It is blue.\n\nOr green.",
  });
  expect(cellText(answer("**Blue** is what a model wrote.", []))).toEqual({
    lead: "",
    rest: "Blue is what a model wrote.",
  });
});

test("each footnote is there once, in the answer's order", () => {
  expect(footnotesOf(MARKED).map(({ index }) => index)).toEqual([2, 4]);
  expect(
    footnotesOf(
      answer("", [
        [7, 9],
        [3, 1],
      ]),
    ).map(({ index }) => index),
  ).toEqual([3, 7]);
});

test("a long text begins with whole words, and a short one is whole", () => {
  expect(beginningOf("one two three", 13)).toBeNull();
  expect(beginningOf("one two three", 12)).toBe("one two…");
  expect(beginningOf("😀".repeat(30), 20)).toBe(`${"😀".repeat(20)}…`);
});

test("how a cell stands tells a confirmed answer from a quote, and both from others", () => {
  const text = "**Ohio** [1]\n\n> It is governed by\n> the laws of Ohio. [1]";
  const standing = (state: TableCell["state"], verified = false, passage = "Of other laws.") => {
    const cites = [{ ...cited(1, 9), cited_text: passage }];
    const found = { ...answer(text, [], "Ohio"), verified, citations: cites } as unknown as TableAnswer;
    return standingOfCell({ state, error: null, answer: found });
  };

  expect(standing("answered", true)).toBe("confirmed");
  expect(standing("answered", false, "governed  by the\nlaws of Ohio.")).toBe("exact");
  expect(standing("answered")).toBe("unconfirmed");
  expect(standing("unsure", true)).toBe("unsure");
  expect(standing("refused")).toBe("unanswered");
  expect((["failed", "waiting", "asking"] as const).map((state) => standing(state))).toEqual([
    "failed",
    "waiting",
    "asking",
  ]);
});

test("a page is asked for again while its cells wait, and kept once none can change", () => {
  const page = (state: AnswerTablePage["state"], ...cells: TableCell["state"][]) =>
    ({ state, rows: { data: [{ cells: cells.map((one) => ({ state: one })) }] } }) as AnswerTablePage;

  expect(isFilling(page("running", "answered", "waiting"))).toBe(true);
  expect(isFilling(page("running", "answered", "asking"))).toBe(true);
  expect(isFilling(page("stopped", "waiting"))).toBe(false);
  expect(isFilling(page("running", "answered", "failed"))).toBe(false);
  expect(isSettled(page("running", "answered", "refused", "unsure"))).toBe(true);
  for (const open of ["waiting", "asking", "failed"] as const) expect(isSettled(page("finished", open))).toBe(false);
});

const PROGRESS = { total: 9, waiting: 3, asking: 1, answered: 2, unsure: 1, refused: 1, failed: 1 };

test("cells that wait or are asked are not done", () => {
  expect(doneOf({ progress: PROGRESS })).toBe(5);
});

test("a stopped table goes on, and of a finished one is asked again what failed", () => {
  const clean = { ...PROGRESS, failed: 0 };

  expect(nextOf({ state: "stopped", progress: clean })).toBe("resume");
  expect(nextOf({ state: "running", progress: PROGRESS })).toBeNull();
  expect(nextOf({ state: "finished", progress: PROGRESS })).toBe("retry");
  expect(nextOf({ state: "finished", progress: clean })).toBeNull();
});
