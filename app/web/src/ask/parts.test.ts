import { expect, test } from "vitest";
import type { Part } from "../api/types";
import { exactIn, hasUncited, partsOf, standingOf } from "./parts";
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

function citedIn(answer: string, { start, end }: Span): number[] {
  const places = citationsOf(answer).map((one, at) => (one.answer_start >= start && one.answer_end <= end ? at : -1));
  return places.filter((at) => at >= 0);
}

/** A quote with the marker behind it. */
function quote(answer: string, text: string, ...highlights: Span[]): Part {
  const quoted = spanOf(answer, text);
  const marker = citationsOf(answer).find((one) => one.answer_start >= quoted.end);
  const place = { start: quoted.start, end: marker?.answer_end ?? quoted.end };
  return { kind: "quote", ...place, citations: citedIn(answer, place), quoted, answers: 0.9, highlights };
}

function prose(answer: string, text: string, ...uncited: Span[]): Part {
  const place = spanOf(answer, text);
  return { kind: "prose", ...place, citations: citedIn(answer, place), uncited };
}

function parts(answer: string, ...told: Part[]) {
  return { ...partsOf(answer, citationsOf(answer), told), exact: [...exactIn(told)].sort() };
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
  const words = spanOf(ANSWER, "2,319 hours");
  const lead: Part = { kind: "lead", ...spanOf(ANSWER, "**2,319 hours** [2]"), citations: [0], words };
  const first = quote(ANSWER, FIRST, spanOf(ANSWER, "2,319 hours", "🛩"));
  const found = parts(ANSWER, lead, first, quote(ANSWER, SECOND));
  expect(shown(found.lead)).toBe("=2,319 hours=[2]");
  expect(found.written).toEqual([]);
  expect(found.quotes.map(shown)).toEqual([`The 🛩 pilot had =2,319 hours= in all.[2]`, `${SECOND}[1]`]);
  expect(found.exact).toEqual([0, 1, 2]);
});

test("a quoted table keeps its rows, and its footnote below it", () => {
  const rows = ["| Part | Price |", "| --- | --- |", "| Bolt | 3 EUR |"];
  const table = rows.join("\n> ");
  const answer = `> ${table}\n>\n> [1]\n>\n> ${SECOND} [2]`;
  const { written, quotes } = parts(answer, quote(answer, table, spanOf(answer, "3 EUR")), quote(answer, SECOND));
  expect(written).toEqual([]);
  expect(quotes.map(shown)).toEqual([`${rows.join("\n").replace("3 EUR", "=3 EUR=")}[1]`, `${SECOND}[2]`]);
});

test("the notes before the quotes of an unsure answer are written, each a paragraph", () => {
  const notes = ["The passages are in another language (English).", "These passages are the nearest:"];
  const answer = `${notes.join("\n\n")}\n\n> ${FIRST} [1]`;
  const note = (text: string, code: "other_language" | "nearest_passages"): Part => {
    return { kind: "note", ...spanOf(answer, text), citations: [], code, language: null };
  };
  const [other = "", nearest = ""] = notes;
  const found = parts(answer, note(other, "other_language"), note(nearest, "nearest_passages"), quote(answer, FIRST));
  expect(shown(found.written)).toBe(notes.join("\n\n"));
  expect(found.quotes.map(shown)).toEqual([`${FIRST}[1]`]);
});

test("a model's text keeps its footnotes, and what it says is no document's", () => {
  const answer = `Ninety zeppelins [1].\n\n> ${FIRST} [2]`;
  const { written, quotes, exact } = parts(answer, prose(answer, "Ninety zeppelins [1]."), quote(answer, FIRST));
  expect(shown(written)).toBe("Ninety zeppelins [1].");
  expect(quotes).toHaveLength(1);
  expect(exact).toEqual([1]);
});

test("sentences of a model that no source supports are told apart", () => {
  const answer = "🚢 Known [1]. Perhaps so.";
  const told = prose(answer, answer, spanOf(answer, "Perhaps so."));
  const { written } = parts(answer, told);
  expect(written.filter((one) => one.kind === "text" && one.uncited).map((one) => shown([one]))).toEqual([
    "Perhaps so.",
  ]);
  expect([hasUncited([told]), hasUncited([prose(answer, answer)])]).toEqual([true, false]);
});

test("a sentence that begins like a quotation keeps its sign; one of several lines loses theirs", () => {
  const answer = "> > 3. so it is:\n> - one\n>\n> - two [1]";
  const text = answer.slice(2, -4);
  const { quotes } = parts(answer, quote(answer, text, spanOf(answer, "- two")));
  expect(quotes.map(shown)).toEqual(["> 3. so it is:\n- one\n\n=- two=[1]"]);
});

test("in plain text the quotation marks are no part of it", () => {
  const answer = `2,319 hours [2]\n\n“${FIRST}” [2]\n“${SECOND}” [1]`;
  const words = spanOf(answer, "2,319 hours");
  const lead: Part = { kind: "lead", ...spanOf(answer, "2,319 hours [2]"), citations: [0], words };
  const found = parts(answer, lead, quote(answer, FIRST), quote(answer, SECOND));
  expect([shown(found.lead), found.written]).toEqual(["=2,319 hours=[2]", []]);
  expect(found.quotes.map(shown)).toEqual([`${FIRST}[2]`, `${SECOND}[1]`]);
});

test("a quote is confirmed only where it is known to answer", () => {
  expect(standingOf({ version: 1, verified: true, answers: 0.9 }, true)).toBe("confirmed");
  expect(standingOf({ version: 1, verified: false, answers: 0.4 }, true)).toBe("exact");
  expect(standingOf({ version: 1, verified: true, answers: null }, true)).toBe("exact");
  expect(standingOf({ version: 1, verified: true }, true)).toBe("exact");
  expect(standingOf({ version: 1, verified: true, answers: null }, false)).toBe("confirmed");
  expect(standingOf({ version: 1, verified: false }, false)).toBe("unconfirmed");
});

test("a quote that holds no word is not shown", () => {
  const answer = `> (11) [2]\n\n> ${FIRST} [1]`;
  const { quotes, exact } = parts(answer, quote(answer, "(11)"), quote(answer, FIRST));
  expect(quotes.map(shown)).toEqual([`${FIRST}[1]`]);
  expect(exact).toEqual([0, 1]);
});

test("a quotation of a model that is nothing but its footnote is not shown", () => {
  const answer = `The documents say:\n\n>  [2]\n\nSo it is [1].`;
  expect(shown(parts(answer, prose(answer, answer)).written)).toBe("The documents say:\n\n\nSo it is [1].");
  const kept = `> ${FIRST}\n>\n> [1]\n\nSo it is [2].`;
  expect(shown(parts(kept, prose(kept, kept)).written)).toContain("[1]");
});

test("words are letters beside each other, and numbers with a unit", () => {
  const quotes = (text: string) => parts(`> ${text} [1]`, quote(`> ${text} [1]`, text)).quotes.length;
  for (const text of ["Go.", "5 kg", "12%", "€ 40", "水", "हिन्दी"]) expect([text, quotes(text)]).toEqual([text, 1]);
  for (const text of ["11", "(a)", "–", "1.", "*"]) expect([text, quotes(text)]).toEqual([text, 0]);
});
