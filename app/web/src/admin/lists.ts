/** Lists of the API: by the page for a screen, and whole for a choice. */
import { type QueryKey, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { request } from "../api/http";
import type { Page } from "../api/types";

type Query = Record<string, string | number | boolean | null | undefined>;

/** A list by the page; `items` are those of all pages so far. */
export function useList<Item>(key: QueryKey, path: string, query: Query = {}, options: { every?: number } = {}) {
  const found = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ signal, pageParam }) =>
      request<Page<Item>>(path, { query: { limit: 50, ...query, cursor: pageParam }, signal }),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_cursor,
    ...(options.every === undefined ? {} : { refetchInterval: options.every }),
  });
  return { ...found, items: found.data?.pages.flatMap(({ data }) => data) ?? [] };
}

/** A whole list, for what is chosen from; empty until it is there. */
export function useEvery<Item>(resource: string, path: string, enabled = true): readonly Item[] {
  const found = useQuery({
    queryKey: [resource, "every"],
    queryFn: async ({ signal }) => {
      const items: Item[] = [];
      let cursor: string | null = null;
      do {
        const page: Page<Item> = await request(path, { query: { limit: 500, cursor }, signal });
        items.push(...page.data);
        cursor = page.next_cursor;
      } while (cursor !== null);
      return items;
    },
    enabled,
  });
  return found.data ?? NONE;
}

const NONE: readonly never[] = [];
