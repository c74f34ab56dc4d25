import { expect, test } from "vitest";
import type { Citation, Overview } from "../api/types";
import { nextQuestions } from "./nextQuestions";

const CITED = [
  { document_id: "doc_1", filename: "log.pdf", start_char: 400, end_char: 500 },
  { document_id: "doc_2", filename: "plan.pdf", start_char: 0, end_char: 50 },
] as Citation[];

function overview(document_id: string, ...questions: [string, number, boolean?][]): Overview {
  return {
    document_id,
    questions: questions.map(([question, start_char, confirmed = true]) => ({
      question,
      start_char,
      end_char: start_char + 10,
      confirmed,
    })),
  } as Overview;
}

test("what stands in a cited passage comes first, then the nearest, three at most", () => {
  const known = [
    overview("doc_1", ["Far?", 9000], ["Inside?", 420], ["Near?", 520]),
    overview("doc_2", ["Beside?", 90], ["Farther?", 5000]),
  ];
  expect(nextQuestions(CITED, known, [])).toEqual([
    { question: "Inside?", document: { id: "doc_1", name: "log.pdf" } },
    { question: "Near?", document: { id: "doc_1", name: "log.pdf" } },
    { question: "Beside?", document: { id: "doc_2", name: "plan.pdf" } },
  ]);
});

test("what was asked, what is not confirmed and what two documents answer are not offered twice", () => {
  const known = [
    overview("doc_1", ["When was it built?", 0], ["Not sure?", 410, false], ["Both?", 430]),
    overview("doc_2", ["both?", 10]),
  ];
  expect(nextQuestions(CITED, known, ["when was it built? "]).map((one) => one.question)).toEqual(["Both?"]);
  expect(nextQuestions(CITED, [], [])).toEqual([]);
});
