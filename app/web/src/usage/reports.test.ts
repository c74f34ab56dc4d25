import { expect, test } from "vitest";
import type { Completions, Costs, Embeddings, Judgements } from "../api/types";
import { unitsOf } from "../ui/money";
import { costParts, KINDS, together, tokenParts, tokensOf, totalsOf, unpricedIn } from "./reports";
import { stackOf } from "./stack";

const bucket = <Result>(start_time: number, results: Result[]) => ({
  start_time,
  end_time: start_time + 10,
  start_local: "",
  results,
});
const completion = (user_id: string | null, uncached: number, cached: number, output: number): Completions => ({
  object: "organization.usage.completions.result",
  user_id,
  input_tokens: uncached + cached,
  input_uncached_tokens: uncached,
  input_cached_tokens: cached,
  output_tokens: output,
  output_delivered_tokens: output,
  num_model_requests: 1,
  num_aborted: 0,
  num_recovered: 0,
  num_unpriced: 0,
  components: { system: 0, history: 0, context: uncached + cached, question: 0, template: 0 },
  cost: { value: null, currency: "usd" },
});
const embedding = (user_id: string | null, tokens: number): Embeddings => ({
  object: "organization.usage.embeddings.result",
  user_id,
  input_tokens: tokens,
  num_model_requests: 2,
  num_aborted: 0,
  num_recovered: 0,
  num_unpriced: 0,
  cost: { value: null, currency: "usd" },
});
const judgement = (user_id: string | null, tokens: number): Judgements => ({
  ...embedding(user_id, tokens),
  object: "organization.usage.judge.result",
});
const cost = (user_id: string | null, value: string | null, num_unpriced: number | null = 0): Costs => ({
  object: "organization.costs.result",
  user_id,
  amount: { value, currency: "eur" },
  quantity: null,
  quantity_unit: null,
  num_unpriced,
});

test("kinds of tokens are one series each", () => {
  const parts = tokenParts(
    {
      completions: [bucket(10, [completion(null, 1, 2, 3)]), bucket(20, [])],
      embeddings: [bucket(10, []), bucket(20, [embedding(null, 7)])],
      rerank: [],
      judge: [bucket(20, [judgement(null, 5)])],
    },
    "kind",
  );
  expect(stackOf([10, 20], parts, { order: KINDS }).map(({ group, values }) => [group, values])).toEqual([
    ["uncached", [1n, 0n]],
    ["cached", [2n, 0n]],
    ["output", [3n, 0n]],
    ["embeddings", [0n, 7n]],
    ["judge", [0n, 5n]],
  ]);
});

test("a user's tokens are those of all reports", () => {
  const parts = tokenParts(
    {
      completions: [bucket(10, [completion("ada", 1, 2, 3), completion("bob", 1, 0, 0)])],
      embeddings: [bucket(10, [embedding("ada", 7), embedding("", 2)])],
      rerank: [],
      judge: [bucket(10, [judgement("bob", 40)])],
    },
    "user",
  );
  expect(stackOf([10], parts).map(({ group, total }) => [group, total])).toEqual([
    ["bob", 41n],
    ["ada", 13n],
    ["", 2n],
  ]);
});

test("costs are added as decimals, and calls without a price counted", () => {
  const buckets = [bucket(10, [cost("ada", "0.1"), cost("bob", null, 4)]), bucket(20, [cost("ada", "0.2", null)])];
  expect(stackOf([10, 20], costParts(buckets, "user"))[0]?.total).toBe(unitsOf("0.3"));
  expect(unpricedIn(buckets)).toBe(4);
});

test("totals of groups come to the total of all", () => {
  const totals = totalsOf(
    {
      completions: [bucket(10, [completion("ada", 1, 2, 3), completion("bob", 100, 0, 0)])],
      embeddings: [bucket(10, [embedding("ada", 7)])],
      rerank: [],
      judge: [bucket(10, [judgement("cyd", 4)])],
      costs: [bucket(10, [cost("ada", "0.5"), cost("cyd", "-0.1")])],
    },
    "user",
  );
  expect(totals.map(({ group, calls, cost }) => [group, calls, cost])).toEqual([
    ["ada", 3, unitsOf("0.5")],
    ["bob", 1, null],
    ["cyd", 2, unitsOf("-0.1")],
  ]);
  const all = together(totals);
  expect([tokensOf(all), all.calls, all.cost]).toEqual([117n, 6, unitsOf("0.4")]);
});
