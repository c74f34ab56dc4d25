/** Reading the overview and its lists. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { request } from "../api/http";
import type { OverviewBody } from "../api/types";
import { type Range, type Span, spanOf } from "../usage/range";

export interface AskedOverview {
  span: Span;
  zone: string;
}

export const PATHS = {
  overview: "v1/admin/overview",
  unanswered: "v1/admin/overview/unanswered",
  unused: "v1/admin/overview/unused-documents",
  expensive: "v1/admin/overview/expensive",
  people: "v1/admin/overview/people",
} as const;

type Query = Record<string, string | number | undefined>;

/** What a range is asked as: it ends with the present minute, so that the period before is as long as what has passed. */
export function askedOf(range: Range, zone: string, now: number): AskedOverview {
  const span = spanOf(range, zone, now);
  const minute = Math.floor(now / 60) * 60 + 60;
  return { span: { ...span, end: Math.max(span.start + 60, Math.min(span.end, minute)) }, zone };
}

export function rangeQuery({ span }: AskedOverview): Query {
  return { start_time: span.start, end_time: span.end };
}

export function overviewQuery(asked: AskedOverview): Query {
  return { ...rangeQuery(asked), bucket_width: asked.span.width, tz: asked.zone };
}

export function useOverview(asked: AskedOverview) {
  return useOverviewList<OverviewBody>(PATHS.overview, overviewQuery(asked));
}

/** One of the lists; what was shown before stays until the next is there. */
export function useOverviewList<Body>(path: string, query: Query) {
  return useQuery({
    queryKey: ["overview", path, query],
    queryFn: ({ signal }) => request<Body>(path, { query, signal }),
    placeholderData: keepPreviousData,
  });
}
