/** An answer's bill and times, as parts of a bar; every number is the server's, and the parts are their whole. */
import type { Usage } from "../api/types";

export type TokenPart =
  | "reading"
  | "embedding"
  | "rewriting"
  | "verification"
  | "context"
  | "question"
  | "history"
  | "system"
  | "template"
  | "answer";
export type TimePart = "retrieve" | "rerank" | "queue" | "reading" | "writing" | "other";

export interface Part<Name extends string> {
  name: Name;
  value: number;
}

/** What all models read and wrote, by purpose; together `total_tokens`. */
export function tokenParts({ components }: Usage): Part<TokenPart>[] {
  const { context, question, history, system, template, completion, embedding, reading, rewriting, verification } =
    components;
  return present([
    { name: "embedding", value: embedding },
    { name: "rewriting", value: rewriting },
    { name: "reading", value: reading },
    { name: "context", value: context },
    { name: "question", value: question },
    { name: "history", value: history },
    { name: "system", value: system },
    { name: "template", value: template },
    { name: "answer", value: completion },
    { name: "verification", value: verification },
  ]);
}

/** What one model read and wrote for one purpose. */
export interface Called {
  purpose: string;
  model: string;
  read: number;
  written: number;
}

/** The model calls by purpose and model, in the order in which they were made first. */
export function callsOf({ calls }: Usage): Called[] {
  const found = new Map<string, Called>();
  for (const { purpose, model, prompt_tokens, completion_tokens } of calls) {
    const key = JSON.stringify([purpose, model]);
    const one = found.get(key) ?? { purpose, model, read: 0, written: 0 };
    one.read += prompt_tokens;
    one.written += completion_tokens;
    found.set(key, one);
  }
  return [...found.values()];
}

/** Milliseconds of the answer's stations, in order; together `total`. */
export function timeParts(timings: Record<string, number | null>): Part<TimePart>[] {
  const at = (name: string) => timings[name] ?? 0;
  const known = at("retrieve") + at("rerank") + at("queue");
  const first = timings.first_token;
  const parts: Part<TimePart>[] = [
    { name: "retrieve", value: at("retrieve") },
    { name: "rerank", value: at("rerank") },
    { name: "queue", value: at("queue") },
  ];
  if (first === null || first === undefined) parts.push({ name: "other", value: at("total") - known });
  else {
    parts.push({ name: "reading", value: first - known });
    parts.push({ name: "writing", value: at("total") - first });
  }
  return present(parts.map((part) => ({ ...part, value: Math.max(0, part.value) })));
}

export function sum(parts: readonly Part<string>[]): number {
  return parts.reduce((total, part) => total + part.value, 0);
}

/** How many of what was left out, by reason. */
export function countBy(reasons: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return counts;
}

/** An amount as it is on the bill, every digit of it: parts of a cent are what an answer costs. */
export function money({ value, currency }: { value: string; currency: string }): string {
  const plain = value.includes(".") ? value.replace(/0+$/, "") : value;
  const digits = Math.max(2, (plain.split(".")[1] ?? "").length);
  const format = new Intl.NumberFormat(undefined, {
    style: "currency",
    currency: currency.toUpperCase(),
    minimumFractionDigits: 2,
    maximumFractionDigits: Math.min(20, digits),
  });
  return format.format(value as Intl.StringNumericLiteral);
}

/** Milliseconds in words' units. */
export function duration(milliseconds: number): string {
  const [value, unit, digits] =
    milliseconds < 1000
      ? [milliseconds, "millisecond", 0]
      : [milliseconds / 1000, "second", milliseconds < 10_000 ? 1 : 0];
  return new Intl.NumberFormat(undefined, {
    style: "unit",
    unit: unit as string,
    unitDisplay: "short",
    minimumFractionDigits: digits as number,
    maximumFractionDigits: digits as number,
  }).format(value as number);
}

function present<Name extends string>(parts: Part<Name>[]): Part<Name>[] {
  return parts.filter((part) => part.value > 0);
}
