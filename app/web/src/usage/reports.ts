/** Reading reports: all pages of one, and what its results come to. */
import { useQuery } from "@tanstack/react-query";
import { request } from "../api/http";
import type { Calls, Completions, Costs, Embeddings, Judgements, ReportPage, Reranks } from "../api/types";
import { unitsOf } from "../ui/money";
import { type Asked, dimensionOf, pageQuery, REPORTS, type Report, type Split } from "./query";
import type { Part } from "./stack";

interface Results {
  all: Calls;
  completions: Completions;
  embeddings: Embeddings;
  rerank: Reranks;
  judge: Judgements;
  costs: Costs;
}

type Bucket<Result> = ReportPage<Result>["data"][number];

/** All reports of one question, each with every bucket of the range. */
export interface AllReports {
  asked: Asked;
  asOf: number;
  completions: Bucket<Completions>[];
  embeddings: Bucket<Embeddings>[];
  rerank: Bucket<Reranks>[];
  judge: Bucket<Judgements>[];
  costs: Bucket<Costs>[];
}

/** The reports, kept up to date while they are looked at; those of the question before until the next are there. */
export function useReports(asked: Asked) {
  const { span, zone, split } = asked;
  return useQuery({
    queryKey: ["usage", "reports", span.start, span.end, span.width, zone, split],
    queryFn: ({ signal }) => everyReport(asked, signal),
    refetchInterval: 60_000,
    placeholderData: (before) => before,
  });
}

async function everyReport(asked: Asked, signal: AbortSignal): Promise<AllReports> {
  const [completions, embeddings, rerank, judge, costs] = await Promise.all([
    everyPage("completions", asked, signal),
    everyPage("embeddings", asked, signal),
    everyPage("rerank", asked, signal),
    everyPage("judge", asked, signal),
    everyPage("costs", asked, signal),
  ]);
  return {
    asked,
    asOf: costs.asOf,
    completions: completions.buckets,
    embeddings: embeddings.buckets,
    rerank: rerank.buckets,
    judge: judge.buckets,
    costs: costs.buckets,
  };
}

async function everyPage<Name extends Report>(
  report: Name,
  asked: Asked,
  signal: AbortSignal,
): Promise<{ buckets: Bucket<Results[Name]>[]; asOf: number }> {
  const buckets: Bucket<Results[Name]>[] = [];
  let page: string | null = null;
  for (;;) {
    const query = pageQuery(report, asked, page);
    const found: ReportPage<Results[Name]> = await request(REPORTS[report], { query, signal });
    buckets.push(...found.data);
    if (found.next_page === null) return { buckets, asOf: found.as_of };
    page = found.next_page;
  }
}

/** What models that write nothing read: one report and one kind of tokens each. */
const READING = ["embeddings", "rerank", "judge"] as const;

export type KindName = "uncached" | "cached" | "output" | (typeof READING)[number];

/** The kinds of tokens, from the bottom of the chart up. */
export const KINDS: readonly KindName[] = ["uncached", "cached", "output", ...READING];

export interface TokenReports {
  completions: readonly Bucket<Completions>[];
  embeddings: readonly Bucket<Embeddings>[];
  rerank: readonly Bucket<Reranks>[];
  judge: readonly Bucket<Judgements>[];
}

/** Tokens by bucket: by their kind, or by group over all kinds. */
export function tokenParts(reports: TokenReports, split: Split): Part[] {
  const parts: Part[] = [];
  const dimension = dimensionOf("completions", split);
  const add = (start: number, result: object, kind: KindName, tokens: number) => {
    const group = dimension === undefined ? kind : groupOf(result, dimension);
    parts.push({ start, group, amount: BigInt(tokens) });
  };
  for (const { start_time, results } of reports.completions) {
    for (const result of results) {
      add(start_time, result, "uncached", result.input_uncached_tokens);
      add(start_time, result, "cached", result.input_cached_tokens);
      add(start_time, result, "output", result.output_tokens);
    }
  }
  for (const kind of READING) {
    for (const { start_time, results } of reports[kind]) {
      for (const result of results) add(start_time, result, kind, result.input_tokens);
    }
  }
  return parts;
}

/** Costs by bucket and group; calls without a price have none. */
export function costParts(buckets: readonly Bucket<Costs>[], split: Split): Part[] {
  const dimension = dimensionOf("costs", split);
  return buckets.flatMap(({ start_time, results }) =>
    results.flatMap((result) =>
      result.amount.value === null
        ? []
        : [
            {
              start: start_time,
              group: dimension === undefined ? "" : groupOf(result, dimension),
              amount: unitsOf(result.amount.value),
            },
          ],
    ),
  );
}

export interface GroupTotals {
  group: string;
  calls: number;
  kinds: Record<KindName, bigint>;
  /** Null while nothing of it has a price. */
  cost: bigint | null;
}

/** What each group took in all, the largest first: by cost, and by tokens where there is none. */
export function totalsOf(reports: TokenReports & { costs: readonly Bucket<Costs>[] }, split: Split): GroupTotals[] {
  const found = new Map<string, GroupTotals>();
  const of = (group: string) => {
    const totals = found.get(group) ?? { group, calls: 0, kinds: none(), cost: null };
    found.set(group, totals);
    return totals;
  };
  const dimension = dimensionOf("completions", split);
  const grouped = (result: object) => of(dimension === undefined ? "" : groupOf(result, dimension));
  for (const { results } of reports.completions) {
    for (const result of results) {
      const totals = grouped(result);
      totals.kinds.uncached += BigInt(result.input_uncached_tokens);
      totals.kinds.cached += BigInt(result.input_cached_tokens);
      totals.kinds.output += BigInt(result.output_tokens);
      totals.calls += result.num_model_requests;
    }
  }
  for (const kind of READING) {
    for (const { results } of reports[kind]) {
      for (const result of results) {
        const totals = grouped(result);
        totals.kinds[kind] += BigInt(result.input_tokens);
        totals.calls += result.num_model_requests;
      }
    }
  }
  for (const { group, amount } of costParts(reports.costs, split)) {
    const totals = of(group);
    totals.cost = (totals.cost ?? 0n) + amount;
  }
  return [...found.values()].sort(
    (one, other) => compared(other.cost ?? 0n, one.cost ?? 0n) || compared(tokensOf(other), tokensOf(one)),
  );
}

/** All tokens of a group. */
export function tokensOf({ kinds }: GroupTotals): bigint {
  return KINDS.reduce((sum, kind) => sum + kinds[kind], 0n);
}

/** The sum of groups, as another one. */
export function together(groups: readonly GroupTotals[]): GroupTotals {
  const sum: GroupTotals = { group: "", calls: 0, kinds: none(), cost: null };
  for (const { calls, kinds, cost } of groups) {
    sum.calls += calls;
    for (const kind of KINDS) sum.kinds[kind] += kinds[kind];
    if (cost !== null) sum.cost = (sum.cost ?? 0n) + cost;
  }
  return sum;
}

/** Calls without a price; by document they are not counted. */
export function unpricedIn(buckets: readonly Bucket<Costs>[]): number {
  return buckets.reduce((sum, { results }) => results.reduce((part, one) => part + (one.num_unpriced ?? 0), sum), 0);
}

/** The currency of a report that has an amount. */
export function currencyOf(buckets: readonly Bucket<Costs>[]): string {
  return buckets.flatMap(({ results }) => results)[0]?.amount.currency ?? "usd";
}

function groupOf(result: object, dimension: string): string {
  const value = (result as Record<string, unknown>)[dimension];
  return typeof value === "string" ? value : "";
}

function none(): Record<KindName, bigint> {
  return { uncached: 0n, cached: 0n, output: 0n, embeddings: 0n, rerank: 0n, judge: 0n };
}

function compared(one: bigint, other: bigint): number {
  return one === other ? 0 : one < other ? -1 : 1;
}
