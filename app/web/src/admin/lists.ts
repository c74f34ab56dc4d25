/** Lists of the API, by the page, for a screen. */
import { type QueryKey, useInfiniteQuery } from "@tanstack/react-query";
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
