/** Where a passage is: its page in words, and its address in this page. */
import type { Citation } from "../api/types";
import { t } from "../strings";

/** Words of a document's version, with where they stand: a footnote's, or what a search has found. */
export type Passage = Pick<
  Citation,
  "document_id" | "version" | "filename" | "cited_text" | "start_char" | "end_char" | "page_start" | "page_end"
>;

/** The pages of a passage, "" where its format has none. */
export function pageWords({ page_start, page_end }: Pick<Passage, "page_start" | "page_end">): string {
  return page_start === null ? "" : t.ask.footnote.page(page_start, page_end);
}

/** The viewer at the passage. */
export function passageHref(passage: Omit<Passage, "filename" | "cited_text">): string {
  const query = new URLSearchParams({
    version: String(passage.version),
    start: String(passage.start_char),
    end: String(passage.end_char),
  });
  if (passage.page_start !== null) query.set("page", String(passage.page_start));
  return `#/documents/${encodeURIComponent(passage.document_id)}?${query}`;
}

/** A conversation's address, for somebody else to open. */
export function conversationAddress(id: string): string {
  const { origin, pathname } = window.location;
  return `${origin}${pathname}#/c/${encodeURIComponent(id)}`;
}
