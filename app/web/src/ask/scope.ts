/** Where a question looks: some collections, some documents, documents with certain details; or everywhere. */
import { asFilter, type Conditions, isComplete, NO_CONDITIONS } from "./filter";

export interface Named {
  id: string;
  name: string;
}

export interface Scope {
  collections: Named[];
  documents: Named[];
  conditions: Conditions;
}

export const EVERYTHING: Scope = { collections: [], documents: [], conditions: NO_CONDITIONS };

interface ScopeBody {
  collection_ids?: string[];
  document_ids?: string[];
  filter?: Record<string, unknown>;
}

/** The scope as the API takes it; what is not limited is left out. */
export function scopeBody(scope: Scope): ScopeBody {
  const filter = asFilter(scope.conditions);
  return {
    ...(scope.collections.length > 0 ? { collection_ids: scope.collections.map((one) => one.id) } : {}),
    ...(scope.documents.length > 0 ? { document_ids: scope.documents.map((one) => one.id) } : {}),
    ...(filter !== null ? { filter } : {}),
  };
}

export function isEverything(scope: Scope): boolean {
  return scope.collections.length === 0 && scope.documents.length === 0 && !scope.conditions.rows.some(isComplete);
}

/** `list` with `item`, or without it where it is in it. */
export function toggled(list: readonly Named[], item: Named): Named[] {
  return list.some((one) => one.id === item.id) ? list.filter((one) => one.id !== item.id) : [...list, item];
}
