/** The watched questions of the reader, and which of them changed since they were last looked at. */
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { request } from "../api/http";
import type { Page, Watch, WatchEvent } from "../api/types";
import { type Scope, scopeBody } from "../ask/scope";

const PATH = "v1/watches";
const KEY = ["watches"];
const AGAIN_MS = 60_000;
const SOON_MS = 2_000;
const SEEN = "footnote-watches-seen";

/** The newest hundred, looked for again each minute; soon, while one waits for its first answer. With `fresh` at once. */
export function useWatches({ fresh = false }: { fresh?: boolean } = {}) {
  return useQuery({
    queryKey: KEY,
    queryFn: ({ signal }) => request<Page<Watch>>(PATH, { query: { limit: 100 }, signal }),
    refetchInterval: ({ state }) => (state.data?.data.some((one) => one.state === "waiting") ? SOON_MS : AGAIN_MS),
    refetchOnMount: fresh ? "always" : true,
    retry: false,
  });
}

/** What changed of one, the newest first. */
export function useWatchEvents(id: string, changedAt: string | null) {
  return useInfiniteQuery({
    queryKey: [...KEY, id, "events", changedAt],
    queryFn: ({ signal, pageParam }) =>
      request<Page<WatchEvent>>(`${pathOf(id)}/events`, { query: { limit: 10, cursor: pageParam }, signal }),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_cursor,
    enabled: changedAt !== null,
  });
}

export function useNewWatch() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ question, scope }: { question: string; scope: Scope }) =>
      request<Watch>(PATH, { method: "POST", body: { question, ...scopeBody(scope) } }),
    onSuccess: () => queries.invalidateQueries({ queryKey: KEY, exact: true }),
  });
}

export function usePause(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (paused: boolean) => request<Watch>(pathOf(id), { method: "PATCH", body: { paused } }),
    onSuccess: () => queries.invalidateQueries({ queryKey: KEY, exact: true }),
  });
}

export function useRemoval(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () => request<unknown>(pathOf(id), { method: "DELETE" }),
    onSuccess: () => {
      // It leaves the list first: what changed of it can be asked for no more.
      queries.setQueryData<Page<Watch>>(
        KEY,
        (page) => page && { ...page, data: page.data.filter((one) => one.id !== id) },
      );
      return queries.invalidateQueries({ queryKey: KEY, exact: true });
    },
  });
}

/** An answer's text without the marks of Markdown that quotes have: `**` around the lead, `>` before a sentence. */
export function plainText(answer: string): string {
  return answer.replace(/\*\*/g, "").replace(/^> ?/gm, "");
}

function pathOf(id: string): string {
  return `${PATH}/${encodeURIComponent(id)}`;
}

/** Whether the question is watched, in the same scope. */
export function isWatched(watches: readonly Watch[], question: string, scope: Scope): boolean {
  const { collection_ids = null, document_ids = null, filter = null } = scopeBody(scope);
  const wanted = JSON.stringify([question, collection_ids, document_ids, filter]);
  return watches.some(
    (one) => JSON.stringify([one.question, one.collection_ids, one.document_ids, one.filter]) === wanted,
  );
}

/** Those whose evidence changed after `seen`, a moment of the server's as it writes it; null: never looked at. */
export function freshOf(watches: readonly Watch[], seen: string | null): Watch[] {
  return watches.filter(
    (one) => one.changed_at !== null && (seen === null || Date.parse(one.changed_at) > Date.parse(seen)),
  );
}

/** When the newest change came that the reader has looked at, in this browser. */
export function seenAt(user: string): string | null {
  return window.localStorage.getItem(`${SEEN}:${user}`);
}

/** Note that the reader has looked at all of these. */
export function noteSeen(user: string, watches: readonly Watch[]): void {
  const changed = watches.flatMap((one) => (one.changed_at === null ? [] : [one.changed_at]));
  const newest = changed.sort((one, other) => Date.parse(other) - Date.parse(one))[0];
  if (newest !== undefined) window.localStorage.setItem(`${SEEN}:${user}`, newest);
}
