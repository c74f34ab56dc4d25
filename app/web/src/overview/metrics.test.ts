import { expect, test } from "vitest";
import type { OverviewBody, OverviewResult } from "../api/types";
import { changeOf, drawnOf, figureOf, METRICS } from "./metrics";

const money = { value: null, currency: "usd" };

function result(given: Partial<OverviewResult> = {}): OverviewResult {
  return {
    object: "overview.result",
    num_questions: 0,
    num_answered: 0,
    num_unsure: 0,
    num_refused: 0,
    num_failed: 0,
    num_cancelled: 0,
    num_unknown: 0,
    num_confirmable: 0,
    num_confirmed: 0,
    confirmed_share: null,
    num_thumbs_up: 0,
    num_thumbs_down: 0,
    median_seconds: null,
    p95_seconds: null,
    num_active_users: 0,
    num_model_requests: 0,
    input_tokens: 0,
    output_tokens: 0,
    num_unpriced: 0,
    cost: money,
    asking_cost: money,
    cost_per_question: money,
    ...given,
  };
}

test("a change is good or bad by the way a figure should go", () => {
  const [before, after] = [
    result({ num_refused: 10, num_questions: 10 }),
    result({ num_refused: 5, num_questions: 15 }),
  ];

  expect(changeOf("refused", after, before)).toEqual({ text: "−50 %", direction: "less", tone: "good" });
  expect(changeOf("refused", before, after)).toEqual({ text: "+100 %", direction: "more", tone: "bad" });
  expect(changeOf("questions", after, before)).toEqual({ text: "+50 %", direction: "more", tone: "neutral" });
});

test("shares are compared in points", () => {
  const [before, after] = [result({ confirmed_share: 0.5 }), result({ confirmed_share: 0.75 })];

  expect(changeOf("confirmed", after, before)).toEqual({ text: "+25 points", direction: "more", tone: "good" });
});

test("nothing is compared with nothing", () => {
  expect(changeOf("questions", result({ num_questions: 3 }), result())).toBeNull();
  expect(changeOf("questions", result({ num_questions: 3 }), null)).toBeNull();
  expect(changeOf("seconds", result(), result({ median_seconds: 1 }))).toBeNull();
});

test("a figure that there is not is a dash", () => {
  expect(figureOf("seconds", result())).toBe("–");
  expect(figureOf("cost", result())).toBe("–");
  expect(figureOf("refused", result())).toBe("0");
});

test("every figure has a value in every bucket", () => {
  const bucket = {
    object: "bucket" as const,
    start_time: 0,
    end_time: 1,
    start_local: "",
    result: result({ num_answered: 2 }),
  };
  const body = { data: [bucket, bucket], total: result() } as unknown as OverviewBody;

  for (const metric of METRICS) {
    for (const { values } of drawnOf(metric, body).series) expect(values).toHaveLength(2);
  }
  expect(drawnOf("questions", body).series.map(({ id, values }) => [id, values])).toEqual([["answered", [2n, 2n]]]);
});
