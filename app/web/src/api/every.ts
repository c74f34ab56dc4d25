/** A whole list, page by page, for what is chosen from or called by its name. */
import { useQuery } from "@tanstack/react-query";
import { request } from "./http";
import type { Page } from "./types";

const NONE: readonly never[] = [];

/** Every item of a list; none until they are there. `resource` is the first part of its query's key. */
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
