/** Footnotes and uncited text within Markdown: before Markdown is read their places are marked by characters that the
 * text does not have, which come out of it where they went in. */
import type { Segment } from "./segments";

/** What may mark a place: punctuation of New Testament editions, since Markdown decides by whether a character is
 * punctuation what begins or ends there, and a footnote's own brackets are. */
const CANDIDATES = "⸀⸁⸂⸃⸄⸅⸆⸇⸈⸉⸊⸋⸌⸍";

export interface Sentinels {
  open: string;
  close: string;
  uncited: string;
  cited: string;
}

export interface Marked {
  markdown: string;
  sentinels: Sentinels;
  /** The marks in order; between `open` and `close` stands a mark's place in it. */
  marks: Extract<Segment, { kind: "mark" }>[];
}

/** What begins a line that belongs to the line and not to what it says: quotes, list items, headings, table cells. */
const LINE_START = /^(?:[\s>|]|[-*+]\s|\d{1,9}[.)]\s|#{1,6}\s|\[[ xX]\]\s)*/;
const LINE_END = /[\s|]*$/;
const FENCE = /^\s*(?:```|~~~)/;

export function withSentinels(segments: readonly Segment[]): Marked {
  const texts = segments.map((segment) => (segment.kind === "text" ? segment.text : "")).join("");
  const sentinels = sentinelsFor(texts);
  const marks: Marked["marks"] = [];
  let markdown = "";
  for (const segment of segments) {
    if (segment.kind === "mark") {
      // An address would go on into the mark.
      const space = /(?:https?:\/\/|www\.|@)\S*$/i.test(markdown) ? " " : "";
      // A mark closes up to its word.
      if (space === "" && /[\p{L}\p{N}] $/u.test(markdown)) markdown = markdown.slice(0, -1);
      markdown += `${space}${sentinels.open}${marks.length}${sentinels.close}`;
      marks.push(segment);
    } else {
      const plain = withoutCandidates(segment.text, sentinels);
      const startsLine = markdown === "" || markdown.endsWith("\n");
      markdown += segment.uncited ? wrapped(plain, sentinels, startsLine) : plain;
    }
  }
  return { markdown, sentinels, marks };
}

/** A piece of what Markdown has left: text, or the mark at a place of `marks`; with whether it is uncited. */
export type Piece = { text: string } | { mark: number } | { uncited: boolean };

/** Text that came out of Markdown, cut at its sentinels. */
export function piecesOf(text: string, { open, close, uncited, cited }: Sentinels): Piece[] {
  const pieces: Piece[] = [];
  const pattern = new RegExp(`${open}(\\d+)${close}|[${uncited}${cited}]`, "gu");
  let at = 0;
  for (const found of text.matchAll(pattern)) {
    if (found.index > at) pieces.push({ text: text.slice(at, found.index) });
    pieces.push(found[1] === undefined ? { uncited: found[0] === uncited } : { mark: Number(found[1]) });
    at = found.index + found[0].length;
  }
  if (at < text.length) pieces.push({ text: text.slice(at) });
  return pieces;
}

/** Text without any sentinel, as for an address. */
export function withoutSentinels(text: string, sentinels: Sentinels): string {
  return piecesOf(text, sentinels)
    .map((piece) => ("text" in piece ? piece.text : ""))
    .join("");
}

function sentinelsFor(text: string): Sentinels {
  const free = Array.from(CANDIDATES).filter((candidate) => !text.includes(candidate));
  const all = Array.from(CANDIDATES);
  const [open = "", close = "", uncited = "", cited = ""] = free.length >= 4 ? free : all;
  return { open, close, uncited, cited };
}

/** A text that has nearly all of the candidates loses those that are needed. */
function withoutCandidates(text: string, sentinels: Sentinels): string {
  const taken = Object.values(sentinels);
  return taken.some((one) => text.includes(one))
    ? Array.from(text)
        .filter((one) => !taken.includes(one))
        .join("")
    : text;
}

/** Uncited text, marked line by line: a mark before a list's bullet or around a table's edge would make another text. */
function wrapped(text: string, { uncited, cited }: Sentinels, startsLine: boolean): string {
  return text
    .split("\n")
    .map((line, number) => {
      if (FENCE.test(line) || !/[\p{L}\p{N}]/u.test(line)) return line;
      const start =
        number > 0 || startsLine ? (LINE_START.exec(line)?.[0].length ?? 0) : line.length - line.trimStart().length;
      const end = LINE_END.exec(line)?.index ?? line.length;
      if (start >= end) return line;
      return `${line.slice(0, start)}${uncited}${line.slice(start, end)}${cited}${line.slice(end)}`;
    })
    .join("\n");
}
