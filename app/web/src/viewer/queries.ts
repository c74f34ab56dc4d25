/** What the viewer asks the server. */
import { queryOptions, useInfiniteQuery, useQueries, useQuery } from "@tanstack/react-query";
import { request } from "../api/http";
import type { Boxes, Content, Document, DocumentVersion, Page } from "../api/types";
import type { Span } from "./place";
import { firstSlice, sliceAfter, sliceBefore } from "./slices";

/** A quote longer than this is cut; the text itself shows all of it. */
const MOST_QUOTED = 4_000;

/** Whether a version has printed pages. Of one that was not read (yet), only its name tells. */
export function isPdfFile(mediaType: string | null, filename: string): boolean {
  return mediaType === null ? /\.pdf$/i.test(filename) : mediaType === "application/pdf";
}

export function useDocument(id: string) {
  return useQuery({
    queryKey: ["documents", id],
    queryFn: ({ signal }) => request<Document>(`v1/documents/${encodeURIComponent(id)}`, { signal }),
  });
}

export function useVersions(id: string) {
  return useQuery({
    queryKey: ["documents", id, "versions", "newest"],
    queryFn: ({ signal }) =>
      request<Page<DocumentVersion>>(`v1/documents/${encodeURIComponent(id)}/versions`, {
        query: { limit: 100 },
        signal,
      }),
  });
}

/** The words of a passage; asked for only where nobody brought them. */
export function useQuote(id: string, version: number | null, span: Span | null, known: string | null) {
  const wanted = span !== null && known === null;
  const found = useQuery({
    queryKey: ["documents", id, "quote", version, span],
    queryFn: ({ signal }) =>
      read(
        id,
        version,
        { start: span?.start ?? 0, end: Math.min(span?.end ?? 0, (span?.start ?? 0) + MOST_QUOTED) },
        false,
        signal,
      ),
    enabled: wanted,
    staleTime: Number.POSITIVE_INFINITY,
  });
  return known ?? found.data?.text ?? null;
}

export function useBoxes(id: string, version: number | null, span: Span | null) {
  return useQuery({ ...boxesQuery(id, version, span ?? { start: 0, end: 0 }), enabled: span !== null });
}

/** Where each of the spans stands. */
export function useBoxesOfEach(id: string, version: number | null, spans: readonly Span[]) {
  return useQueries({ queries: spans.map((span) => boxesQuery(id, version, span)) });
}

function boxesQuery(id: string, version: number | null, { start, end }: Span) {
  return queryOptions({
    queryKey: ["documents", id, "boxes", version, { start, end }],
    queryFn: ({ signal }) =>
      request<Boxes>(`v1/documents/${encodeURIComponent(id)}/boxes`, { query: { start, end, version }, signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** The canonical text, from around the passage to wherever one reads on. */
export function useText(id: string, version: number | null, span: Span | null, structure: boolean) {
  return useInfiniteQuery({
    queryKey: ["documents", id, "text", version, span, structure],
    queryFn: ({ pageParam, signal }) => read(id, version, pageParam, structure, signal),
    initialPageParam: firstSlice(span),
    getPreviousPageParam: (first: Content) => sliceBefore(first.start),
    getNextPageParam: (last: Content) => sliceAfter(last.end, last.total),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

function read(
  id: string,
  version: number | null,
  slice: Span,
  structure: boolean,
  signal: AbortSignal,
): Promise<Content> {
  const query = { ...slice, version, ...(structure ? { structure } : {}) };
  return request<Content>(`v1/documents/${encodeURIComponent(id)}/content`, { query, signal });
}
