import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { SourceCards } from "./SourceCards";
import { EVERYTHING } from "./scope";
import { applied, isReading, newTurn, type Turn } from "./turn";

const PASSAGE = {
  chunk_id: "chk_1",
  document_id: "doc_1",
  version: 2,
  name: "the log.pdf",
  place: "page 4 — Ships",
  page_start: 4,
  page_end: 4,
  start_char: 10,
  end_char: 90,
  excerpt: "Forty <b>ships</b> left the harbour…",
};
const SOURCES = { retrieved: 2, presented: ["chk_1", "chk_2"], cited: [], compressed: [], summarised: [], dropped: [] };
const PASSAGES = [PASSAGE, { ...PASSAGE, chunk_id: "chk_2", place: "", page_start: null, page_end: null }];

function after(...events: [string, unknown][]): Turn {
  const start = newTurn("a", "Ships?", EVERYTHING);
  return events.reduce((turn, [event, data]) => applied(turn, { event, data: JSON.stringify(data) }), start);
}

function shown(turn: Turn): string {
  return renderToStaticMarkup(<SourceCards turn={turn} onOpen={null} />);
}

const READING: [string, unknown] = ["sources", { ...SOURCES, passages: PASSAGES }];
const CANCELLED = {
  answered: false,
  reason: "cancelled",
  finish_reason: "cancelled",
  abstention: { stage: null },
  parts: [],
  timings_ms: {},
};

test("the cards are open until the answer begins, then they are a line", () => {
  const reading = shown(after(READING));
  expect(reading).toContain('open=""');
  expect(reading).toContain("Reading 2 passages…");
  const answered = shown(after(READING, ["delta", { text: "Forty." }]));
  expect(answered).not.toContain('open=""');
  expect(answered).toContain("2 passages read");
});

test("a card names its passage, quotes it as text and leads to it", () => {
  const html = shown(after(READING));
  expect(html).toContain("the log.pdf");
  expect(html).toContain("page 4 — Ships");
  expect(html).toContain("Forty &lt;b&gt;ships&lt;/b&gt; left the harbour…");
  expect(html).toContain('href="#/documents/doc_1?version=2&amp;start=10&amp;end=90&amp;page=4"');
  expect(html).toContain('href="#/documents/doc_1?version=2&amp;start=10&amp;end=90"');
});

test("passages of an answer that was stopped or failed before it began were found, not read", () => {
  expect(shown(after(READING, ["done", CANCELLED]))).toContain("2 passages found");
  expect(shown(after(READING, ["error", { status: 504 }]))).toContain("2 passages found");
  expect(shown(after(READING, ["delta", { text: "Forty" }], ["done", CANCELLED]))).toContain("2 passages read");
});

test("nothing is read where no passage was found, and before they are known", () => {
  expect(isReading(after())).toBe(false);
  expect(isReading(after(["sources", { ...SOURCES, presented: [], passages: [] }]))).toBe(false);
  expect(isReading(after(READING))).toBe(true);
});
