/** Which documents are looked at. */
import type { DocumentStatus } from "../api/types";
import { type Condition, filterOf } from "./metadata";
import type { Wanted } from "./server";

export interface View {
  q: string;
  collectionId: string | null;
  status: DocumentStatus | null;
  conditions: readonly Condition[];
}

export const NO_VIEW: View = { q: "", collectionId: null, status: null, conditions: [] };

export function wantedBy({ q, collectionId, status, conditions }: View): Wanted {
  return { q: q.trim(), collectionId, status, filter: filterOf(conditions) };
}

/** Whether it leaves something out besides other collections. */
export function isNarrowed(view: View): boolean {
  const { q, status, filter } = wantedBy(view);
  return q !== "" || status !== null || filter !== null;
}
