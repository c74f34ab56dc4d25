import { expect, test } from "vitest";
import { columnsOf, MOST_COLUMNS, MOST_NAME, MOST_QUESTION, questionsBody, wrongOf } from "./questions";

test("each line is a question, with a name before a bar; empty lines are none", () => {
  const lines = "  Law | Which law governs? \r\n\nHow long does it last?\n | \nA | b | c\nName |\n| Who?";

  expect(columnsOf(lines)).toEqual([
    { name: "Law", question: "Which law governs?" },
    { name: "How long does it last?", question: "How long does it last?" },
    { name: "|", question: "|" },
    { name: "A", question: "b | c" },
    { name: "Name |", question: "Name |" },
    { name: "| Who?", question: "| Who?" },
  ]);
  expect(columnsOf(" \n\t\n")).toEqual([]);
});

test("a question that is its own name is sent without one", () => {
  expect(questionsBody(columnsOf("Law | Which law?\nHow long?"))).toEqual([
    { name: "Law", question: "Which law?" },
    "How long?",
  ]);
});

test("what the server would refuse is told before", () => {
  const lines = (count: number) => Array.from({ length: count }, (_, at) => `Question ${at}?`).join("\n");

  expect(wrongOf(columnsOf(lines(MOST_COLUMNS)))).toBeNull();
  expect(wrongOf(columnsOf(lines(MOST_COLUMNS + 1)))).toEqual({ kind: "many", found: MOST_COLUMNS + 1 });
  expect(wrongOf(columnsOf("Law | Which?\nLaw | Whose?"))).toEqual({ kind: "same", name: "Law" });
  expect(wrongOf(columnsOf(`${"n".repeat(MOST_NAME)} | Which?`))).toBeNull();
  expect(wrongOf(columnsOf(`${"n".repeat(MOST_NAME + 1)} | Which?`))?.kind).toBe("longName");
  expect(wrongOf(columnsOf("q".repeat(MOST_NAME + 1)))).toBeNull();
  expect(wrongOf(columnsOf("q".repeat(MOST_QUESTION + 1)))).toEqual({ kind: "longQuestion" });
  expect(wrongOf(columnsOf(`${"😀".repeat(MOST_NAME)} | Which?`))).toBeNull();
});
