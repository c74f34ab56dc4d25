/** What a report is asked for: the same query for a chart and for its file. */
import type { Span } from "./range";

export const SPLITS = ["kind", "user", "key", "model", "collection", "document"] as const;
export type Split = (typeof SPLITS)[number];

/** The API's name of what a report is split by, which is also the member of its results. */
export const DIMENSIONS = {
  user: "user_id",
  key: "api_key_id",
  model: "model",
  collection: "project_id",
  document: "document_id",
} as const;

export const REPORTS = {
  all: "v1/admin/usage",
  completions: "v1/admin/usage/completions",
  embeddings: "v1/admin/usage/embeddings",
  rerank: "v1/admin/usage/rerank",
  judge: "v1/admin/usage/judge",
  costs: "v1/admin/costs",
} as const;
export type Report = keyof typeof REPORTS;

export interface Asked {
  span: Span;
  zone: string;
  split: Split;
}

type Query = Record<string, string | number | undefined>;

/** The most buckets the server puts on a page; what is more comes on further pages. */
const MOST = { "1h": 168, "1d": 31, "1mo": 36 } as const;

/** The parameters of a report, for a file: all of its range. */
export function reportQuery(report: Report, { span, zone, split }: Asked): Query {
  return {
    start_time: span.start,
    end_time: span.end,
    bucket_width: span.width,
    tz: zone,
    group_by: dimensionOf(report, split),
  };
}

/** The same for a page of it. */
export function pageQuery(report: Report, asked: Asked, page: string | null): Query {
  return { ...reportQuery(report, asked), limit: MOST[asked.span.width], page: page ?? undefined };
}

/** Only costs are known by document. */
export function dimensionOf(report: Report, split: Split): (typeof DIMENSIONS)[keyof typeof DIMENSIONS] | undefined {
  if (split === "kind" || (split === "document" && report !== "costs")) return undefined;
  return DIMENSIONS[split];
}
