/** What became of a footnote's passage since the answer: its document may have another version now, or be deleted. */
import type { Aged, Citation } from "../api/types";

/** What takes a passage's confirmation: other words, no such words, or a version that is not compared yet. */
export type Changed = "altered" | "absent" | "unsettled";
export type Since = "same" | "moved" | "newer" | "deleted" | Changed;

/** `newer`: a version came while the answer was written, which cites the one before. */
export function sinceOf({ state, version, current_version }: Pick<Citation, "version" | keyof Aged>): Since {
  if (state === "moved" || state === "altered") return state;
  if (state === "gone") return current_version == null ? "deleted" : "absent";
  const another = current_version != null && current_version !== version;
  if (state === null) return another ? "unsettled" : "same";
  return state === undefined && another ? "newer" : "same";
}

export function isChanged(since: Since): since is Changed {
  return since === "altered" || since === "absent" || since === "unsettled";
}
