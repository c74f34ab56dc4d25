import { expect, test } from "vitest";
import type { QuotedSpan } from "../api/types";
import { partsOf, standingOf } from "./parts";
import type { Segment, Span } from "./segments";

/** Where `text` stands in `answer`, in code points, from the place `after` on. */
function spanOf(answer: string, text: string, after = ""): Span {
  const from = answer.indexOf(text, answer.indexOf(after));
  const start = Array.from(answer.slice(0, from)).length;
  return { start, end: start + Array.from(text).length };
}

function citationsOf(answer: string) {
  return Array.from(answer.matchAll(/\[(\d)\]/g), (found) => {
    const start = Array.from(answer.slice(0, found.index)).length;
    return { index: Number(found[1]), answer_start: start, answer_end: start + 3 };
  });
}

function parts(answer: string, lead: Span | null, ...quoted: QuotedSpan[]) {
  return partsOf(answer, citationsOf(answer), { lead, uncited: [], quoted });
}

/** With `=` around what is marked. */
function shown(segments: readonly Segment[]): string {
  return segments
    .map((one) => (one.kind === "mark" ? `[${one.number}]` : one.marked ? `=${one.text}=` : one.text))
    .join("");
}

const FIRST = "The 🛩 pilot had 2,319 hours in all.";
const SECOND = "He had *flown* since `1970`.";
const ANSWER = `**2,319 hours** [2]\n\n> ${FIRST} [2]\n>\n> ${SECOND} [1]`;

test("a lead and two quotes, with the words marked that answer", () => {
  const highlights = [spanOf(ANSWER, "2,319 hours", "🛩")];
  const { lead, written, quotes, exact } = parts(
    ANSWER,
    spanOf(ANSWER, "2,319 hours"),
    { ...spanOf(ANSWER, FIRST), highlights },
    { ...spanOf(ANSWER, SECOND), highlights: [] },
  );
  expect(shown(lead)).toBe("=2,319 hours=[2]");
  expect(written).toEqual([]);
  expect(quotes.map(shown)).toEqual([`The 🛩 pilot had =2,319 hours= in all.[2]`, `${SECOND}[1]`]);
  expect([...exact].sort()).toEqual([0, 1, 2]);
});

test("quotes apart by empty lines, told in any order, are shown as they stand", () => {
  const answer = `> ${FIRST} [2]\n\n> ${SECOND} [1]`;
  const { lead, written, quotes } = parts(answer, null, spanOf(answer, SECOND), spanOf(answer, FIRST));
  expect([lead, written]).toEqual([[], []]);
  expect(quotes.map(shown)).toEqual([`${FIRST}[2]`, `${SECOND}[1]`]);
});

test("a quoted table keeps its rows, and its footnote below it", () => {
  const rows = ["| Part | Price |", "| --- | --- |", "| Bolt | 3 EUR |"];
  const table = rows.join("\n> ");
  const answer = `> ${table}\n>\n> [1]\n>\n> ${SECOND} [2]`;
  const highlights = [spanOf(answer, "3 EUR")];
  const { written, quotes } = parts(answer, null, { ...spanOf(answer, table), highlights }, spanOf(answer, SECOND));
  expect(written).toEqual([]);
  expect(quotes.map(shown)).toEqual([`${rows.join("\n").replace("3 EUR", "=3 EUR=")}[1]`, `${SECOND}[2]`]);
});

test("the sentence before the quotes of an unsure answer is written, without their sign", () => {
  const sentence = "The documents do not clearly answer this. These passages are the nearest:";
  const answer = `${sentence}\n\n> ${FIRST} [1]`;
  const { written, quotes } = parts(answer, null, spanOf(answer, FIRST));
  expect(shown(written)).toBe(sentence);
  expect(quotes.map(shown)).toEqual([`${FIRST}[1]`]);
});

test("a model's text keeps its footnotes, and what it says is no document's", () => {
  const answer = `Ninety zeppelins [1].\n\n> ${FIRST} [2]`;
  const { written, quotes, exact } = parts(answer, null, spanOf(answer, FIRST));
  expect(shown(written)).toBe("Ninety zeppelins [1].");
  expect(quotes).toHaveLength(1);
  expect([...exact]).toEqual([1]);
  expect(parts("Forty ships [1].", null)).toMatchObject({ lead: [], quotes: [], exact: new Set() });
});

test("one span over all quotations, as in older answers, is taken apart", () => {
  const answer = "🚢 capital [1]\n\n> In `2005` [2]\n>\n> > 3. so [1]";
  const { written, quotes } = parts(answer, null, spanOf(answer, "> In `2005` [2]\n>\n> > 3. so [1]"));
  expect(shown(written)).toBe("🚢 capital [1]");
  expect(quotes.map(shown)).toEqual(["In `2005`[2]", "> 3. so[1]"]);
  const line = `${FIRST} [2] ${SECOND} [1]`;
  expect(parts(line, null, spanOf(line, line)).quotes.map(shown)).toEqual([`${FIRST}[2]`, `${SECOND}[1]`]);
});

test("a sentence that begins like a quotation keeps its sign; one of several lines loses theirs", () => {
  const answer = "> > 3. so it is:\n> - one\n>\n> - two [1]";
  const span = { start: 2, end: Array.from(answer).length - 4, highlights: [spanOf(answer, "- two")] };
  expect(parts(answer, null, span).quotes.map(shown)).toEqual(["> 3. so it is:\n- one\n\n=- two=[1]"]);
});

test("in plain text the quotation marks are no part of it", () => {
  const answer = `2,319 hours [2]\n\n“${FIRST}” [2]\n“${SECOND}” [1]`;
  const spans = [spanOf(answer, FIRST), spanOf(answer, SECOND)];
  const { lead, written, quotes } = parts(answer, spanOf(answer, "2,319 hours"), ...spans);
  expect([shown(lead), written]).toEqual(["=2,319 hours=[2]", []]);
  expect(quotes.map(shown)).toEqual([`${FIRST}[2]`, `${SECOND}[1]`]);
});

test("a lead in a sentence of other words is not a document's own", () => {
  const answer = `He had **2,319 hours** [2]\n\n> ${FIRST} [2]`;
  const { lead, written, exact } = parts(answer, spanOf(answer, "2,319 hours"), spanOf(answer, FIRST));
  expect(shown(lead)).toBe("He had =2,319 hours=[2]");
  expect(written).toEqual([]);
  expect([...exact]).toEqual([1]);
});

test("places that are not in the answer are passed over, and no words are lost or pass for quoted", () => {
  const { lead, quotes } = parts(ANSWER, { start: 3, end: 9000 }, { start: 90, end: 80 }, { start: -1, end: 4 });
  expect([lead, quotes]).toEqual([[], []]);
  const answer = `> ${FIRST} [2]\n\nSo a model says.`;
  const { written } = parts(answer, null, spanOf(answer, FIRST));
  expect(shown(written)).toContain("So a model says.");
});

test("a quote is confirmed only where it is known to answer", () => {
  expect(standingOf({ verified: true, answers: 0.9 }, true)).toBe("confirmed");
  expect(standingOf({ verified: false, answers: 0.4 }, true)).toBe("exact");
  expect(standingOf({ verified: true, answers: null }, true)).toBe("exact");
  expect(standingOf({ verified: true }, true)).toBe("exact");
  expect(standingOf({ verified: true, answers: null }, false)).toBe("confirmed");
  expect(standingOf({ verified: false }, false)).toBe("unconfirmed");
});

test("a quote that holds no word is not shown, nor its footnote", () => {
  const answer = `> [11] [2]\n\n> ${FIRST} [1]`;
  const citations = citationsOf(answer.replace("[11]", "(11)")).filter(({ answer_start }) => answer_start > 3);
  const quoted = [spanOf(answer, "[11]"), spanOf(answer, FIRST)];
  const { quotes, exact } = partsOf(answer, citations, { lead: null, uncited: [], quoted });
  expect(quotes.map(shown)).toEqual([`${FIRST}[1]`]);
  expect([...exact].sort()).toEqual([0, 1]);
});

test("a quotation that is nothing but its footnote is not shown, whether it is told of or not", () => {
  const answer = `The documents say:\n\n>  [2]\n\n> ${FIRST} [1]`;
  const { written, quotes, exact } = parts(answer, null, spanOf(answer, FIRST));
  expect(shown(written)).toBe("The documents say:\n\n");
  expect(quotes.map(shown)).toEqual([`${FIRST}[1]`]);
  expect([...exact].sort()).toEqual([0, 1]);
  expect(shown(parts(`> ${FIRST}\n>\n> [1]\n\nSo it is [2].`, null).written)).toContain("[1]");
});

test("words are letters beside each other, and numbers with a unit", () => {
  const quotes = (text: string) => parts(`> ${text} [1]`, null, spanOf(`> ${text} [1]`, text)).quotes.length;
  for (const text of ["Go.", "5 kg", "12%", "€ 40", "水", "हिन्दी"]) expect([text, quotes(text)]).toEqual([text, 1]);
  for (const text of ["11", "(a)", "–", "1.", "*"]) expect([text, quotes(text)]).toEqual([text, 0]);
});
