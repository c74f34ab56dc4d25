/** The tables of the reader: their list, one with its rows page by page, and what can be done with them. */
import {
  type InfiniteData,
  type QueryClient,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { request } from "../api/http";
import type { AnswerTable, AnswerTablePage, Collection, Page } from "../api/types";
import { isComplete } from "../ask/filter";
import { EVERYTHING, type Scope, scopeBody } from "../ask/scope";
import { isFilling, isSettled } from "./cells";
import { type Column, questionsBody } from "./questions";
import { words } from "./strings";

const PATH = "v1/tables";
const KEY = "tables";
const LIST = [KEY, "list"];
const LISTED_MS = 5_000;
const FILLING_MS = 2_000;
const ROWS = 50;
const LONGEST_NAME = 60;

/** The newest first; looked for again while one is filled. A hidden tab looks for nothing, here and below. */
export function useTables() {
  return useInfiniteQuery({
    queryKey: LIST,
    queryFn: ({ pageParam, signal }) =>
      request<Page<AnswerTable>>(PATH, { query: { limit: 50, cursor: pageParam }, signal }),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_cursor,
    refetchInterval: ({ state }) => {
      const all = state.data?.pages.flatMap(({ data }) => data) ?? [];
      return all.some((one) => one.state === "running") ? LISTED_MS : false;
    },
    refetchOnMount: "always",
  });
}

/** One table: its progress and its bill, again until it is finished or stopped. */
export function useAnswerTable(id: string) {
  return useQuery({
    queryKey: [KEY, id, "head"],
    queryFn: ({ signal }) => request<AnswerTablePage>(pathOf(id), { query: { limit: 1 }, signal }),
    refetchInterval: ({ state }) => (state.data?.state === "running" ? FILLING_MS : false),
  });
}

/** Its rows. A page of which no cell can change any more is not asked for again. */
export function useTableRows(id: string) {
  return useInfiniteQuery({
    queryKey: [KEY, id, "rows"],
    queryFn: ({ client, queryKey, pageParam, signal }) => {
      const known = client.getQueryData<InfiniteData<AnswerTablePage, string | null>>(queryKey);
      const page = known?.pages[known.pageParams.indexOf(pageParam)];
      if (page !== undefined && isSettled(page)) return page;
      return request<AnswerTablePage>(pathOf(id), { query: { limit: ROWS, cursor: pageParam }, signal });
    },
    initialPageParam: null as string | null,
    getNextPageParam: ({ rows }) => rows.next_cursor,
    refetchInterval: ({ state }) => (state.data?.pages.some(isFilling) === true ? FILLING_MS : false),
  });
}

export function useNewTable() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ columns, scope }: { columns: readonly Column[]; scope: Scope }) =>
      request<AnswerTable>(PATH, { method: "POST", body: { questions: questionsBody(columns), ...scopeBody(scope) } }),
    onSuccess: () => queries.invalidateQueries({ queryKey: LIST }),
  });
}

export function useResumption(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () => request<AnswerTable>(`${pathOf(id)}/resume`, { method: "POST" }),
    onSuccess: () => queries.invalidateQueries({ queryKey: [KEY, id] }),
  });
}

export async function deleteTable(id: string): Promise<void> {
  await request<unknown>(pathOf(id), { method: "DELETE" });
}

/** The path of a table, whose file is there, too. */
export function pathOf(id: string): string {
  return `${PATH}/${encodeURIComponent(id)}`;
}

/** The documents that another screen hands over, in the state of the browser's history; all of them where it does not. */
export function handedOver(state: unknown): Scope | null {
  const scope = (state as { scope?: Partial<Scope> } | null)?.scope;
  return scope === undefined ? null : { ...EVERYTHING, ...scope };
}

/** Of a table that is deleted nothing is asked any more. */
export function forgetTable(queries: QueryClient, id: string): void {
  queries.removeQueries({ queryKey: [KEY, id] });
  void queries.invalidateQueries({ queryKey: LIST });
}

/** What a table is called: its first columns as far as there is room, and how many others it has. */
export function nameOf({ questions }: Pick<AnswerTable, "questions">): string {
  const names = questions.map(({ name }) => name);
  const room = names.findIndex((_, at) => at > 0 && names.slice(0, at + 1).join("").length > LONGEST_NAME);
  const first = names.slice(0, room < 0 ? names.length : room);
  return words.name(first, names.length - first.length);
}

/** How many documents are in a scope; null where only the server knows. */
export function documentsIn(scope: Scope, collections: readonly Collection[]): number | null {
  const { collections: some, documents, conditions } = scope;
  if (conditions.rows.some(isComplete) || (some.length > 0 && documents.length > 0)) return null;
  if (documents.length > 0) return documents.length;
  const counted = some.length === 0 ? collections : collections.filter(({ id }) => some.some((one) => one.id === id));
  return counted.length === 0 ? null : counted.reduce((sum, one) => sum + one.documents, 0);
}
