/** Search inside the document that is shown: what was typed, where it stands, and which place is looked at. */
import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useState } from "react";
import { request } from "../api/http";
import type { Occurrence, Occurrences } from "../api/types";
import type { Span } from "./place";

const TYPING_MS = 200;
/** Marked around the place that is looked at, before and after it: each is found on its page by itself. */
const BESIDE = 4;

export interface Find {
  typed: string;
  onType: (typed: string) => void;
  hits: readonly Occurrence[];
  /** How many there are, those beyond the list included. */
  total: number;
  /** The place in the list that is looked at. */
  at: number;
  go: (step: 1 | -1) => void;
  current: Occurrence | null;
  /** Whether an answer for what was typed is there. */
  known: boolean;
  problem: unknown;
}

export function useFind(id: string, version: number): Find {
  const [typed, onType] = useState("");
  const [asked, setAsked] = useState("");
  const [at, setAt] = useState(0);
  const wanted = typed.trim();

  useEffect(() => {
    const timer = window.setTimeout(() => setAsked(wanted), TYPING_MS);
    return () => window.clearTimeout(timer);
  }, [wanted]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: other words, or another version, are looked at from the first
  useEffect(() => setAt(0), [asked, version]);

  const found = useQuery({
    queryKey: ["documents", id, "find", version, asked],
    queryFn: ({ signal }) =>
      request<Occurrences>(`v1/documents/${encodeURIComponent(id)}/find`, {
        query: { q: asked, version, limit: 500 },
        signal,
      }),
    enabled: asked !== "",
    staleTime: Number.POSITIVE_INFINITY,
  });
  const hits = asked === "" ? NONE : (found.data?.data ?? NONE);
  const { length } = hits;
  const go = useCallback((step: 1 | -1) => setAt((before) => stepped(before, step, length)), [length]);

  return {
    typed,
    onType,
    hits,
    total: asked === "" ? 0 : (found.data?.total ?? 0),
    at,
    go,
    current: hits[at] ?? null,
    known: asked !== "" && asked === wanted && found.isSuccess,
    problem: found.error,
  };
}

const NONE: readonly Occurrence[] = [];

/** The next place or the one before, round the end. */
export function stepped(at: number, step: 1 | -1, length: number): number {
  return length === 0 ? 0 : (at + step + length) % length;
}

/** The places to mark lightly: the nearest to the one that is looked at, without it. */
export function beside(hits: readonly Occurrence[], at: number): Span[] {
  return hits
    .slice(Math.max(0, at - BESIDE), at + BESIDE + 1)
    .flatMap((hit) => (hit === hits[at] ? [] : [spanOf(hit)]));
}

export function spanOf({ start_char: start, end_char: end }: Occurrence): Span {
  return { start, end };
}
