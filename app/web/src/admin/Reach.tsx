import type { Collection } from "../api/types";
import { t } from "../strings";

const WORDS = t.admin.keys;

interface ReachProps {
  /** Null is all of them. */
  ids: readonly string[] | null;
  collections: readonly Collection[];
}

/** The collections that a key reaches, by name. */
export function Reach({ ids, collections }: ReachProps) {
  if (ids === null) return t.admin.everything;
  if (ids.length === 0) return WORDS.nothing;
  const names = ids.map((id) => collections.find((one) => one.id === id)?.name ?? id);
  return names.length <= 3 ? (
    names.join(", ")
  ) : (
    <span title={names.join(", ")}>{WORDS.some(String(names.length))}</span>
  );
}
