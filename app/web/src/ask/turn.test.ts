import { expect, test } from "vitest";
import { Problem } from "../api/http";
import type { Turn as KeptTurn, Part } from "../api/types";
import { EVERYTHING } from "./scope";
import {
  applied,
  isUnsure,
  keptTurn,
  languageFound,
  mergedTurns,
  newTurn,
  partsIn,
  quotedTurn,
  searchedFor,
  type Turn,
} from "./turn";

type Making = NonNullable<KeptTurn["making"]>;

const CITATION = {
  index: 1,
  answer_start: 6,
  answer_end: 9,
  document_id: "doc_1",
  version: 1,
  filename: "a.pdf",
  chunk_id: "chk_1",
  page_start: 4,
  page_end: null,
  start_char: 0,
  end_char: 5,
  cited_text: "Ships",
  verified: true,
  support: 0.9,
  origin: "model",
};

function after(events: [string, unknown][]): Turn {
  const start = newTurn("a", "Ships?", EVERYTHING);
  return events.reduce((turn, [event, data]) => applied(turn, { event, data: JSON.stringify(data) }), start);
}

const SOURCES = { retrieved: 8, presented: ["chk_1", "chk_2"], cited: [], compressed: [], summarised: [], dropped: [] };
const DONE = {
  answered: true,
  reason: null,
  finish_reason: "stop",
  model: "m",
  standalone_question: null,
  abstention: { stage: null },
  parts: [],
  timings_ms: { total: 5 },
};

test("a stream's events make an answer", () => {
  const turn = after([
    ["sources", { ...SOURCES, passages: [] }],
    ["delta", { text: "Ships" }],
    ["delta", { text: " [1]." }],
    ["citation", CITATION],
    ["citation", CITATION],
    ["done", DONE],
  ]);
  expect(turn.text).toBe("Ships [1].");
  expect(turn.state).toBe("done");
  expect(turn.sources?.cited).toEqual(["chk_1"]);
  expect(turn.citations).toHaveLength(2);
});

const QUOTES = {
  answer: "> Ships [1]",
  answered: true,
  citations: [CITATION],
  parts: [
    { kind: "quote", start: 0, end: 11, quoted: { start: 2, end: 7 }, highlights: [], citations: [0], answers: 0.9 },
  ],
  answers: 0.9,
};

test("quotes are an answer of their own until the answer quotes itself", () => {
  const told = after([["quotes", QUOTES]]);
  expect(told.text).toBe("");
  expect(quotedTurn(told)).toMatchObject({ state: "done", text: "> Ships [1]", citations: [CITATION] });
  expect(quotedTurn(after([["done", DONE]]))).toBeNull();
  const worded = applied(told, { event: "done", data: JSON.stringify(DONE) });
  expect(quotedTurn(worded)?.ending).toEqual({ answered: true, parts: QUOTES.parts });
  const quoting = applied(told, { event: "done", data: JSON.stringify({ ...DONE, parts: QUOTES.parts }) });
  expect(quotedTurn(quoting)).toBeNull();
});

test("one that was cancelled is stopped, one with an error has a problem", () => {
  expect(after([["done", { ...DONE, finish_reason: "cancelled" }]]).state).toBe("stopped");
  const failed = after([["error", { type: "urn:x:deadline", status: 504, detail: "Too late.", instance: "req_1" }]]);
  expect(failed.state).toBe("failed");
  expect(failed.problem).toBeInstanceOf(Problem);
  expect((failed.problem as Problem).requestId).toBe("req_1");
});

test("what was searched for is told where it is not what was asked", () => {
  const done = (standalone: string | null) => after([["done", { ...DONE, standalone_question: standalone }]]);
  expect(searchedFor(done("How large are the ships?"))).toBe("How large are the ships?");
  expect(searchedFor(done("Ships?"))).toBeNull();
  expect(searchedFor(done(null))).toBeNull();
  expect(searchedFor(newTurn("a", "Ships?", EVERYTHING))).toBeNull();
});

test("the language of the passages is told by the note that it is another", () => {
  const said = (...parts: Part[]) => after([["done", { ...DONE, answered: false, reason: "no_evidence", parts }]]);
  const refusal: Part = { kind: "refusal", start: 0, end: 5, citations: [], reason: "no_evidence" };
  const note = { kind: "note" as const, start: 7, end: 90, citations: [] };
  expect(languageFound(said(refusal, { ...note, code: "other_language", language: "English" }))).toBe("English");
  expect(languageFound(said({ ...note, code: "nearest_passages", language: null }))).toBeNull();
  expect(languageFound(said(refusal))).toBeNull();
  expect(languageFound(newTurn("a", "Ships?", EVERYTHING))).toBeNull();
});

function kept(request_id: string): KeptTurn {
  return {
    ordinal: 1,
    request_id,
    question: `kept ${request_id}`,
    standalone_question: null,
    answered: true,
    answer: "x",
    citations: [CITATION, { index: "broken" }],
    making: null,
    feedback: null,
    created_at: "2026-11-21T10:00:00Z",
  };
}

function here(requestId: string | null, key = requestId ?? "?"): Turn {
  return { ...newTurn(key, `here ${key}`, EVERYTHING), requestId };
}

test("a kept turn keeps the footnotes that are whole, whether or not they tell how likely they answer", () => {
  const likely = [
    { ...CITATION, answers: 0.9 },
    { ...CITATION, answers: null },
  ];
  const citations = [CITATION, ...likely, { ...CITATION, answers: "much" }, { ...CITATION, support: null }];
  expect(keptTurn({ ...kept("req_1"), citations }).citations).toEqual([CITATION, ...likely]);
});

test("an answer has its parts from the stream as from the server's keeping", () => {
  const words = { start: 2, end: 7 };
  const quoted = { quoted: { start: 12, end: 30 }, answers: 0.9, highlights: [words] };
  const parts: Part[] = [
    { kind: "lead", start: 0, end: 10, citations: [0], words },
    { kind: "quote", start: 12, end: 34, citations: [1], ...quoted },
  ];
  const making = { ...DONE, parts, sources: SOURCES, usage: {}, budget: {} } as unknown as Making;
  for (const turn of [after([["done", { ...DONE, parts }]]), keptTurn({ ...kept("req_1"), making })]) {
    expect(partsIn(turn)).toEqual(parts);
  }
});

test("a text of which nothing more is known is one part, in code points", () => {
  const whole = { kind: "prose", start: 0, end: 7, citations: [], uncited: [] };
  expect(partsIn(keptTurn({ ...kept("req_1"), answer: "🚢 ships" }))).toEqual([whole]);
  expect(partsIn(after([["delta", { text: "🚢 ships" }]]))).toEqual([whole]);
});

test("it is unsure where the server says so, when it has ended", () => {
  const unsure = { ...DONE, answered: false, reason: "unsure" };
  expect(isUnsure(after([["done", unsure]]))).toBe(true);
  expect(isUnsure(after([["done", { ...unsure, finish_reason: "cancelled" }]]))).toBe(false);
  expect(isUnsure(after([["done", { ...unsure, reason: "no_evidence" }]]))).toBe(false);
  expect(isUnsure(after([["done", DONE]]))).toBe(false);
});

test("a kept turn tells how its answer was made, an old one does not", () => {
  const usage = { prompt_tokens: 7 } as Making["usage"];
  const making = { ...DONE, sources: SOURCES, usage, budget: {} } as unknown as Making;
  const turn = keptTurn({ ...kept("req_1"), making });
  expect(turn.sources?.presented).toEqual(["chk_1", "chk_2"]);
  expect(turn.usage?.prompt_tokens).toBe(7);
  expect(turn.ending).toMatchObject({ model: "m", finish_reason: "stop", parts: [] });
  expect(keptTurn(kept("req_1"))).toMatchObject({ sources: null, usage: null, ending: { answered: true } });
  expect(keptTurn(kept("req_1")).ending?.timings_ms).toBeUndefined();
});

test("what is kept and what is here are one thread", () => {
  const turns = mergedTurns(
    [kept("req_1"), kept("req_2"), kept("req_4")],
    [here("req_2"), here("req_3"), here("req_4"), here(null, "now")],
  );
  expect(turns.map((turn) => turn.question)).toEqual([
    "kept req_1",
    "here req_2",
    "here req_3",
    "here req_4",
    "here now",
  ]);
});

function keptAt(request_id: string, minute: number): KeptTurn {
  return {
    ordinal: 1,
    request_id,
    question: `${request_id}?`,
    standalone_question: null,
    answered: true,
    answer: "Yes.",
    citations: [],
    making: null,
    feedback: null,
    created_at: `2026-11-21T10:0${minute}:00.000Z`,
  };
}

test("an interrupted question stands where it was asked, until it is asked again", () => {
  const lost = (question: string, minute: number) => ({
    request_id: `lost ${minute}`,
    question,
    created_at: `2026-11-21T10:0${minute}:30.000Z`,
  });
  const kept = [keptAt("a", 1), keptAt("b", 3)];
  const shown = (here: Turn[], ...interrupted: ReturnType<typeof lost>[]) =>
    mergedTurns(kept, here, interrupted).map(({ question, state }) => `${question} ${state}`);

  expect(shown([], lost("one?", 0), lost("two?", 2), lost("three?", 2), lost("four?", 4))).toEqual([
    "one? interrupted",
    "a? done",
    "two? interrupted",
    "three? interrupted",
    "b? done",
    "four? interrupted",
  ]);
  expect(shown([newTurn("turn-0", "two?", EVERYTHING)], lost("two?", 2))).toEqual([
    "a? done",
    "b? done",
    "two? searching",
  ]);
});
