import { expect, test } from "vitest";
import type { Usage } from "../api/types";
import { callsOf, countBy, duration, money, sum, timeParts, tokenParts } from "./bill";

function called(purpose: string, model: string, read: number, written = 0): Usage["calls"][number] {
  return { purpose, model, prompt_tokens: read, cached_tokens: 0, completion_tokens: written, planned: false };
}

const USAGE: Usage = {
  prompt_tokens: 2323,
  completion_tokens: 41,
  total_tokens: 2364,
  prompt_tokens_details: { cached_tokens: 310 },
  components: {
    template: 24,
    system: 180,
    history: 0,
    question: 17,
    context: 2090,
    completion: 41,
    embedding: 12,
    reading: 0,
    rewriting: 0,
    verification: 0,
  },
  calls: [called("embed_query", "embedder", 12), { ...called("answer", "writer", 2311, 41), cached_tokens: 310 }],
  by_document: { doc_7: 2090 },
  auxiliary: [{ purpose: "embed_query", tokens: 12 }],
  cost: { value: "0.000123000000", currency: "usd" },
  num_unpriced: 0,
};

test("the parts of the tokens are all of them", () => {
  const parts = tokenParts(USAGE);
  expect(sum(parts)).toBe(USAGE.total_tokens);
  expect(sum(parts.filter((part) => part.name !== "answer"))).toBe(USAGE.prompt_tokens);
  expect(parts.map((part) => part.name)).toEqual(["embedding", "context", "question", "system", "template", "answer"]);
});

test("calls for the same purpose to the same model are added up", () => {
  const calls = [called("locate", "reader", 300), called("verify", "judge", 40), called("verify", "judge", 2)];
  expect(callsOf({ ...USAGE, calls })).toEqual([
    { purpose: "locate", model: "reader", read: 300, written: 0 },
    { purpose: "verify", model: "judge", read: 42, written: 0 },
  ]);
});

test("the parts of the time are all of it", () => {
  const parts = timeParts({ queue: 2, retrieve: 12, rerank: 0, first_token: 85, total: 640 });
  expect(parts).toEqual([
    { name: "retrieve", value: 12 },
    { name: "queue", value: 2 },
    { name: "reading", value: 71 },
    { name: "writing", value: 555 },
  ]);
  expect(sum(parts)).toBe(640);
});

test("where nothing was written the rest of the time has no name", () => {
  const parts = timeParts({ queue: 0, retrieve: 12, rerank: 3, first_token: null, total: 20 });
  expect(parts.at(-1)).toEqual({ name: "other", value: 5 });
  expect(sum(parts)).toBe(20);
});

test("an amount keeps its digits", () => {
  expect(money({ value: "0.000123000000", currency: "usd" })).toContain("0.000123");
  expect(money({ value: "0.000123000000", currency: "usd" })).not.toContain("0.0001230");
  expect(money({ value: "12", currency: "usd" })).toContain("12.00");
});

test("reasons are counted", () => {
  expect([...countBy(["budget", "merged", "budget"])]).toEqual([
    ["budget", 2],
    ["merged", 1],
  ]);
});

test("times are short", () => {
  expect(duration(12.3)).toBe("12 ms");
  expect(duration(1240)).toBe("1.2 sec");
});
