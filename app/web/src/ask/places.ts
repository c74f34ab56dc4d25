/** Passages of documents: their type, their page numbers in words, and their links. */
import type { Citation, Hit } from "../api/types";
import { t } from "../strings";
import { addressOf, type Place } from "../viewer/place";

/** Words of a document's version, with where they stand: a footnote's, or what a search has found, with the sentences
 * of it that are nearest to the question. */
export type Passage = Pick<
  Citation,
  "document_id" | "version" | "filename" | "cited_text" | "start_char" | "end_char" | "page_start" | "page_end"
> & { highlights?: Hit["highlights"] };

/** Opens a passage beside the conversation; null on narrow screens, where a link to the viewer is followed instead. */
export type OpenPassage = ((passage: Passage) => void) | null;

/** The pages of a passage, "" where its format has none. */
export function pageWords({ page_start, page_end }: Pick<Passage, "page_start" | "page_end">): string {
  return page_start === null ? "" : t.ask.footnote.page(page_start, page_end);
}

/** Where the passage is, for the viewer. */
export function placeIn(passage: Omit<Passage, "filename" | "cited_text">): Place {
  return {
    document: passage.document_id,
    version: passage.version,
    span: { start: passage.start_char, end: passage.end_char },
    marks: (passage.highlights ?? []).map(({ start_char, end_char }) => ({ start: start_char, end: end_char })),
    page: passage.page_start,
  };
}

/** The viewer at the passage. */
export function passageHref(passage: Omit<Passage, "filename" | "cited_text">): string {
  return addressOf(placeIn(passage));
}

/** A conversation's address, for somebody else to open. */
export function conversationAddress(id: string): string {
  const { origin, pathname } = window.location;
  return `${origin}${pathname}#/c/${encodeURIComponent(id)}`;
}
