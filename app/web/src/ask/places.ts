/** Passages of documents: their type, their page numbers in words, and their links. */
import type { Aged, Citation, Hit } from "../api/types";
import { t } from "../strings";
import { addressOf, type Place } from "../viewer/place";

/** Words of a document's version, with where they stand: a footnote's, or what a search has found, with the sentences
 * of it that are nearest to the question. `cited_text` is null where only the server has the words. */
export type Passage = Pick<Citation, "document_id" | "version" | "filename" | "start_char" | "end_char" | Numbered> &
  Aged & {
    cited_text: string | null;
    highlights?: Hit["highlights"];
  };

/** What a format tells of where a passage stands. */
type Numbered = "page_start" | "page_end" | "section" | "sheet" | "cell";

/** Opens a passage beside the conversation; null on narrow screens, where a link to the viewer is followed instead. */
export type OpenPassage = ((passage: Passage) => void) | null;

/** The sheet and cell or the pages of a passage, or the section it stands in where its format has neither; "" where all
 * are unknown. */
export function pageWords({
  page_start,
  page_end,
  section = null,
  sheet = null,
  cell = null,
}: Pick<Passage, Numbered>): string {
  if (sheet !== null) return t.ask.footnote.sheet(sheet, cell);
  if (page_start !== null) return t.ask.footnote.page(page_start, page_end);
  return section === null ? "" : sectionWords(section);
}

/** A heading with its own number, such as `3 Leave` or `2.1. Sick leave`. */
const NUMBERED = /^(\d{1,4}(?:\.\d{1,4}){0,6})\.?[ \t]+(?=\S)/;
const LONGEST_HEADING = 80;

/** A section in words: by its number and name, where its heading has both. */
export function sectionWords(heading: string): string {
  const [whole = "", number = ""] = NUMBERED.exec(heading) ?? [];
  const points = Array.from(heading.slice(whole.length));
  const name =
    points.length > LONGEST_HEADING ? `${points.slice(0, LONGEST_HEADING).join("").trimEnd()}…` : points.join("");
  return number === "" ? t.ask.footnote.section(name) : t.ask.footnote.numberedSection(number, name);
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

/** Where the passage is in the version that is searched now; null where that is not known, or it is no other place. */
export function placeNow(passage: Passage): Place | null {
  const { version, current_version: current, current_start_char: start, current_end_char: end } = passage;
  if (current == null || current === version || start == null || end == null) return null;
  return {
    document: passage.document_id,
    version: current,
    span: { start, end },
    marks: [],
    page: passage.current_page_start ?? null,
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
