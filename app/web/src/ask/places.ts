/** Where a passage is: its page in words, and its address in this page. */
import { t } from "../strings";

interface Passage {
  document_id: string;
  version: number;
  start_char: number;
  end_char: number;
  page_start: number | null;
  page_end: number | null;
}

/** The pages of a passage, "" where its format has none. */
export function pageWords({ page_start, page_end }: Pick<Passage, "page_start" | "page_end">): string {
  return page_start === null ? "" : t.ask.footnote.page(page_start, page_end);
}

/** The viewer at the passage. */
export function passageHref(passage: Passage): string {
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
