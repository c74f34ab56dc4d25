/** Which reindexing of a collection was begun here last: the API has no list of them, so their ids are kept for as long
 * as the browser's tab. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Problem, request } from "../api/http";
import type { Reindexing } from "../api/types";

const KEPT = "footnote-reindexings";

export function useBegun(): [Record<string, string>, (collection: string, job: string) => void] {
  const [begun, setBegun] = useState(kept);
  function add(collection: string, job: string) {
    const next = { ...begun, [collection]: job };
    window.sessionStorage.setItem(KEPT, JSON.stringify(next));
    setBegun(next);
  }
  return [begun, add];
}

/** Where one stands, asked again while it runs; null when nobody knows it any more. */
export function useReindexing(job: string | undefined) {
  return useQuery({
    queryKey: ["jobs", job],
    queryFn: async ({ signal }) => {
      try {
        return await request<Reindexing>(`v1/jobs/${job}`, { signal });
      } catch (error) {
        if (error instanceof Problem && error.status === 404) return null;
        throw error;
      }
    },
    enabled: job !== undefined,
    refetchInterval: (query) => (query.state.data?.finished_at === null ? 1500 : false),
  });
}

function kept(): Record<string, string> {
  try {
    const found: unknown = JSON.parse(window.sessionStorage.getItem(KEPT) ?? "{}");
    if (typeof found !== "object" || found === null) return {};
    return Object.fromEntries(Object.entries(found).filter(([, job]) => typeof job === "string"));
  } catch {
    return {};
  }
}
