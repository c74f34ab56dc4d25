import { expect, test } from "vitest";
import type { Citation } from "../api/types";
import { answerAsMarkdown } from "./markdownCopy";

function citation(answer: string, mark: string, fields: Partial<Citation> = {}, from = 0): Citation {
  const start = Array.from(answer.slice(0, answer.indexOf(mark, from))).length;
  return {
    index: 1,
    answer_start: start,
    answer_end: start + Array.from(mark).length,
    document_id: "doc_1",
    version: 1,
    filename: "report.pdf",
    chunk_id: "chk_1",
    page_start: 4,
    page_end: 4,
    start_char: 10,
    end_char: 40,
    cited_text: "Forty ships\nleft the harbour.",
    verified: true,
    support: 0.9,
    origin: "model",
    ...fields,
  };
}

test("footnotes quote their passages, with file and page", () => {
  const answer = "🚢 Forty ships [1].";
  expect(answerAsMarkdown(answer, [citation(answer, "[1]")])).toBe(
    "🚢 Forty ships [^1].\n\n[^1]: “Forty ships left the harbour.” — report.pdf, page 4\n",
  );
});

test("a source is one footnote, with each passage of it that is cited", () => {
  const answer = "One [1]. Two [1]. Three [1].";
  const notes = [
    citation(answer, "[1]"),
    citation(answer, "[1]", {}, 8),
    citation(answer, "[1]", { start_char: 90, end_char: 99, cited_text: "x_y", verified: false, page_start: null }, 17),
  ];
  expect(answerAsMarkdown(answer, notes)).toBe(
    "One [^1]. Two [^1]. Three [^1].\n\n" +
      "[^1]: “Forty ships left the harbour.” — report.pdf, page 4; “x\\_y” — report.pdf (not confirmed)\n",
  );
});

test("a source that is quoted again has its number again, as in the answer's text", () => {
  const answer = "> Forty ships. [1]\n\n> Two boats. [2]\n\n> A raft. [1]";
  const notes = [
    citation(answer, "[1]"),
    citation(answer, "[2]", { index: 2, document_id: "doc_2", filename: "log.pdf", cited_text: "Two boats." }),
    citation(answer, "[1]", { start_char: 90, end_char: 99, cited_text: "A raft.", page_start: 7, page_end: 7 }, 30),
  ];
  expect(answerAsMarkdown(answer, notes)).toBe(
    "> Forty ships. [^1]\n\n> Two boats. [^2]\n\n> A raft. [^1]\n\n" +
      "[^1]: “Forty ships left the harbour.” — report.pdf, page 4; “A raft.” — report.pdf, page 7\n" +
      "[^2]: “Two boats.” — log.pdf, page 4\n",
  );
});

test("a passage that confirms one of its sentences says so", () => {
  const answer = "One [1]. Two [1].";
  const notes = [citation(answer, "[1]"), citation(answer, "[1]", { verified: false }, 8)];
  expect(answerAsMarkdown(answer, notes)).toContain("page 4 (confirmed for 1 of the 2 sentences that name it)\n");
});

test("a quote needs no confirmation, and its lead names the same footnote", () => {
  const answer = "**Forty** [2]\n\n> Forty ships left the harbour. [2]";
  const notes = [citation(answer, "[2]", { index: 2 }), citation(answer, "[2]", { index: 2, verified: false }, 13)];
  expect(answerAsMarkdown(answer, notes, new Set([0, 1]))).toBe(
    "**Forty** [^1]\n\n> Forty ships left the harbour. [^1]\n\n" +
      "[^1]: “Forty ships left the harbour.” — report.pdf, page 4\n",
  );
});

test("a document's own Markdown is text", () => {
  const answer = "So [1].";
  const copied = answerAsMarkdown(answer, [citation(answer, "[1]", { cited_text: "![x](http://a) <b>" })]);
  expect(copied).toContain("\\!\\[x\\](http://a) \\<b\\>");
});

test("an answer without footnotes is its text", () => {
  expect(answerAsMarkdown("I don't know.\n", [])).toBe("I don't know.");
});

test("an answer that was put up to it loads nothing elsewhere", () => {
  expect(answerAsMarkdown("![x](http://a/b) <img src=x> <https://a.example> 1 < 2", [])).toBe(
    "\\![x](http://a/b) \\<img src=x> <https://a.example> 1 < 2",
  );
});
