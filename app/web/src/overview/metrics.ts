/** The figures of the overview, and what each comes to: in words, beside the period before, and as a chart. */
import type { OverviewBody, OverviewResult } from "../api/types";
import { t } from "../strings";
import type { ChartSeries } from "../ui/Chart";
import { axisText, moneyText, ONE, unitsOf } from "../ui/money";
import { compactText, countText, percentText } from "../ui/numbers";

const WORDS = t.overview;

export const METRICS = [
  "questions",
  "confirmed",
  "unsure",
  "refused",
  "failed",
  "disliked",
  "seconds",
  "people",
  "tokens",
  "cost",
] as const;
export type Metric = (typeof METRICS)[number];

/** Which way a figure should go; null where neither is better. */
export const BETTER: Record<Metric, "more" | "less" | null> = {
  questions: null,
  confirmed: "more",
  unsure: "less",
  refused: "less",
  failed: "less",
  disliked: "less",
  seconds: "less",
  people: null,
  tokens: null,
  cost: null,
};

/** A figure as a number to compare and to draw; null where there is none. */
export function numberOf(metric: Metric, result: OverviewResult): number | null {
  switch (metric) {
    case "questions":
      return result.num_questions;
    case "confirmed":
      return result.confirmed_share;
    case "unsure":
      return result.num_unsure;
    case "refused":
      return result.num_refused;
    case "failed":
      return result.num_failed;
    case "disliked":
      return result.num_thumbs_down;
    case "seconds":
      return result.median_seconds;
    case "people":
      return result.num_active_users;
    case "tokens":
      return result.input_tokens + result.output_tokens;
    case "cost":
      return result.cost.value === null ? null : Number(result.cost.value);
  }
}

/** A figure in words. */
export function figureOf(metric: Metric, result: OverviewResult): string {
  const value = numberOf(metric, result);
  if (value === null) return WORDS.none;
  switch (metric) {
    case "confirmed":
      return percentText(value);
    case "seconds":
      return secondsText(value);
    case "tokens":
      return compactText(value);
    case "cost":
      return costText(result.cost);
    default:
      return countText(value);
  }
}

/** What is said below a figure. */
export function subOf(metric: Metric, result: OverviewResult): string {
  const share = (part: number) => (result.num_questions === 0 ? 0 : part / result.num_questions);
  switch (metric) {
    case "questions":
      return WORDS.sub.answered(countText(result.num_answered));
    case "confirmed":
      return WORDS.sub.confirmed(countText(result.num_confirmed), countText(result.num_confirmable));
    case "unsure":
      return WORDS.sub.share(percentText(share(result.num_unsure)));
    case "refused":
      return WORDS.sub.share(percentText(share(result.num_refused)));
    case "failed":
      return WORDS.sub.share(percentText(share(result.num_failed)));
    case "disliked":
      return WORDS.sub.liked(countText(result.num_thumbs_up));
    case "seconds":
      return result.p95_seconds === null ? "" : WORDS.sub.p95(secondsText(result.p95_seconds));
    case "people":
      return "";
    case "tokens":
      return WORDS.sub.calls(countText(result.num_model_requests));
    case "cost":
      return result.cost_per_question.value === null ? "" : WORDS.sub.perQuestion(costText(result.cost_per_question));
  }
}

export interface Change {
  /** Such as `+12 %`. */
  text: string;
  direction: "more" | "less" | "same";
  tone: "good" | "bad" | "neutral";
}

/** How a figure changed against the period before; null where one of the two is missing or was zero. */
export function changeOf(metric: Metric, now: OverviewResult, before: OverviewResult | null): Change | null {
  const after = numberOf(metric, now);
  const earlier = before === null ? null : numberOf(metric, before);
  if (after === null || earlier === null || (earlier === 0 && metric !== "confirmed")) return null;
  const share = metric === "confirmed";
  const difference = Math.round((share ? after - earlier : after / earlier - 1) * 100);
  if (difference === 0) return { text: WORDS.same, direction: "same", tone: "neutral" };
  const direction = difference > 0 ? "more" : "less";
  const size = `${difference > 0 ? "+" : "−"}${countText(Math.abs(difference))}`;
  const better = BETTER[metric];
  return {
    text: share ? WORDS.points(size) : `${size} %`,
    direction,
    tone: better === null ? "neutral" : better === direction ? "good" : "bad",
  };
}

export interface Drawn {
  series: ChartSeries[];
  scale: bigint;
  amount: (value: bigint) => string;
  ticks: (values: readonly number[]) => string[];
  /** What the whole range comes to, where that is no sum. */
  overall: string | null;
}

const SHARE = 10_000n;
const MILLI = 1000n;
const counted = { scale: 1n, amount: countText, ticks: (values: readonly number[]) => values.map(compactText) };

/** A figure over the buckets of an overview, as a chart draws it. */
export function drawnOf(metric: Metric, body: OverviewBody): Drawn {
  const results = body.data.map(({ result }) => result);
  const words = WORDS.series;
  const one = (id: string, label: string, color: string, of: (result: OverviewResult) => bigint): ChartSeries => ({
    id,
    label,
    color,
    values: results.map(of),
  });
  const count = (id: string, label: string, color: string, of: (result: OverviewResult) => number) =>
    one(id, label, color, (result) => BigInt(of(result)));
  const name = WORDS.metrics[metric];
  const whole = figureOf(metric, body.total);
  switch (metric) {
    case "questions":
      return {
        ...counted,
        overall: null,
        series: [
          count("answered", words.answered, "--c1", (result) => result.num_answered),
          count("unsure", words.unsure, "--c3", (result) => result.num_unsure),
          count("refused", words.refused, "--c4", (result) => result.num_refused),
          count("failed", words.failed, "--c6", (result) => result.num_failed),
          count("cancelled", words.cancelled, "--c2", (result) => result.num_cancelled),
          count("unknown", words.unknown, "--c5", (result) => result.num_unknown),
        ].filter(({ values }) => values.some((value) => value !== 0n)),
      };
    case "confirmed":
      return {
        scale: SHARE / 100n,
        amount: (value) => percentText(Number(value) / Number(SHARE)),
        ticks: (values) => values.map((value) => `${countText(value)} %`),
        overall: whole,
        series: [one(metric, name, "--c2", (result) => inParts(result.confirmed_share, SHARE))],
      };
    case "disliked":
      return {
        ...counted,
        overall: null,
        series: [
          count("disliked", words.disliked, "--c6", (result) => result.num_thumbs_down),
          count("liked", words.liked, "--c2", (result) => result.num_thumbs_up),
        ],
      };
    case "seconds":
      return {
        scale: MILLI,
        amount: (value) => (value === 0n ? WORDS.none : secondsText(Number(value) / Number(MILLI))),
        ticks: (values) => values.map((value) => secondsText(value)),
        overall: whole,
        series: [one(metric, name, "--c1", (result) => inParts(result.median_seconds, MILLI))],
      };
    case "tokens":
      return {
        ...counted,
        overall: null,
        series: [
          count("read", words.read, "--c1", (result) => result.input_tokens),
          count("written", words.written, "--c3", (result) => result.output_tokens),
        ],
      };
    case "cost": {
      const { currency } = body.total.cost;
      return {
        scale: ONE,
        amount: (units) => moneyText(units, currency),
        ticks: (values) => axisText(values, currency),
        overall: null,
        series: [one(metric, name, "--c1", (result) => unitsOf(result.cost.value ?? "0"))],
      };
    }
    case "people":
      return {
        ...counted,
        overall: whole,
        series: [count(metric, name, "--c1", (result) => result.num_active_users)],
      };
    default:
      return {
        ...counted,
        overall: null,
        series: [count(metric, name, "--c3", (result) => numberOf(metric, result) ?? 0)],
      };
  }
}

export function costText(cost: { value: string | null; currency: string }): string {
  return cost.value === null ? WORDS.none : moneyText(unitsOf(cost.value), cost.currency);
}

const seconds = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 2 });

export function secondsText(value: number): string {
  return WORDS.seconds(value >= 100 ? countText(Math.round(value)) : seconds.format(value));
}

function inParts(value: number | null, parts: bigint): bigint {
  return value === null ? 0n : BigInt(Math.round(value * Number(parts)));
}
