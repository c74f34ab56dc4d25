/** An answer in its parts, as the server tells them: the words that lead it, what is written, and what it quotes.
 * Offsets count code points. */
import type { Aged, Citation, Part } from "../api/types";
import { type Changed, isChanged, sinceOf } from "./ageing";
import { type Segment, segmentsOf } from "./segments";

export interface Parts {
  /** The line that gives the answer in a few words, marked; empty without one. */
  lead: Segment[];
  /** Markdown: a model's text, or what the server says itself. */
  written: Segment[];
  /** Sentences of documents as they stand there, likeliest first; the words that answer are marked. */
  quotes: Segment[][];
}

type Place = Pick<Citation, "index" | "answer_start" | "answer_end">;

/** Two letters beside each other, or a number with its unit. What has neither, such as a reference, quotes nothing. */
const WORD = /\p{L}\p{M}*\p{L}|\p{N}\s?[\p{L}\p{Sc}%‰°]|\p{Sc}\s?\p{N}|[\p{sc=Han}]/u;

/** The parts of a whole answer. */
export function partsOf(answer: string, citations: readonly Place[], parts: readonly Part[]): Parts {
  const found: Parts = { lead: [], written: [], quotes: [] };
  for (const part of parts) {
    if (part.kind === "lead") {
      found.lead = leadOf(marked(segmentsOf(answer, citations, [part.words], part)));
    } else if (part.kind === "quote") {
      const said = marked(segmentsOf(answer, citations, part.highlights, part.quoted));
      const behind = segmentsOf(answer, citations, [], { start: part.quoted.end, end: part.end });
      const quote = trimmed([...withoutSigns(said), ...behind.filter((one) => one.kind === "mark")]);
      if (holdsWord(quote)) found.quotes.push(quote);
    } else {
      if (found.written.length > 0) found.written.push({ kind: "text", text: "\n\n", uncited: false });
      found.written.push(...segmentsOf(answer, citations, part.kind === "prose" ? part.uncited : [], part));
    }
  }
  return { ...found, written: withoutEmptyQuotes(found.written) };
}

/** Which citations stand at a document's own words, by their place in the list. */
export function exactIn(parts: readonly Part[]): ReadonlySet<number> {
  const own = parts.filter((part) => part.kind === "lead" || part.kind === "quote" || part.kind === "note");
  return new Set(own.flatMap((part) => part.citations));
}

/** Whether a model wrote sentences that no source supports. */
export function hasUncited(parts: readonly Part[]): boolean {
  return parts.some((part) => part.kind === "prose" && part.uncited.length > 0);
}

function holdsWord(quote: readonly Segment[]): boolean {
  return WORD.test(quote.map((one) => (one.kind === "text" ? one.text : " ")).join(""));
}

/** Markdown without its quotations that hold no word. */
export function withoutEmptyQuotes(segments: readonly Segment[]): Segment[] {
  const kept: Segment[] = [];
  let quotation: Segment[] = [];
  let startsLine = true;
  let quotes = false;
  const close = () => {
    if (holdsWord(quotation)) kept.push(...quotation);
    quotation = [];
  };
  for (const one of segments) {
    if (one.kind === "mark") {
      (quotes ? quotation : kept).push(one);
      startsLine = false;
      continue;
    }
    for (const text of one.text.split(/(?<=\n)/)) {
      if (startsLine) {
        quotes = /^ {0,3}>/.test(text);
        if (!quotes) close();
      }
      (quotes ? quotation : kept).push({ ...one, text });
      startsLine = text.endsWith("\n");
    }
  }
  close();
  return joined(kept);
}

/** Texts of one kind that follow each other are one. */
function joined(segments: readonly Segment[]): Segment[] {
  const all: Segment[] = [];
  for (const one of segments) {
    const last = all.at(-1);
    if (one.kind === "text" && last?.kind === "text" && last.uncited === one.uncited && last.marked === one.marked)
      all[all.length - 1] = { ...last, text: last.text + one.text };
    else all.push(one);
  }
  return all;
}

export type Standing = "confirmed" | "exact" | "unconfirmed" | "gone" | Changed;

/** What may be said of a footnote. A document's own words are confirmed only where they are known to answer: of older
 * answers it is not. Nothing is confirmed by a document that is `gone`, nobody can look, nor by one that changed. */
export function standingOf(
  citation: Pick<Citation, "verified" | "answers" | "version" | keyof Aged>,
  exact: boolean,
  gone = false,
): Standing {
  const { verified, answers } = citation;
  if (gone) return "gone";
  const since = sinceOf(citation);
  if (since === "deleted") return "gone";
  if (isChanged(since)) return since;
  if (!exact) return verified ? "confirmed" : "unconfirmed";
  return verified && answers != null ? "confirmed" : "exact";
}

/** Pieces that were cut at spans, these as marked. */
function marked(segments: readonly Segment[]): Segment[] {
  return segments.map((one) => (one.kind === "mark" ? one : { ...one, uncited: false, marked: one.uncited }));
}

/** The lead's line without Markdown's signs of bold. */
function leadOf(segments: readonly Segment[]): Segment[] {
  return segments
    .map((one) => (one.kind === "mark" ? one : { ...one, text: one.text.replace(/^\*\*|\*\*(?=\s*$)/g, "") }))
    .filter((one) => one.kind === "mark" || one.text.trim() !== "");
}

/** Quoted text without Markdown's signs of a quotation before its further lines. */
function withoutSigns(segments: readonly Segment[]): Segment[] {
  return segments.map((one) =>
    one.kind === "mark" ? one : { ...one, text: one.text.replace(/\n>(?: |(?=\n|$))/g, "\n") },
  );
}

/** A sentence without space around it; a footnote closes up to its word. */
function trimmed(quote: readonly Segment[]): Segment[] {
  return quote
    .map((one, at) => {
      if (one.kind === "mark") return one;
      const text = at === 0 ? one.text.trimStart() : one.text;
      const last = quote.slice(at + 1).every((other) => other.kind === "mark" || other.text.trim() === "");
      return { ...one, text: last ? text.trimEnd() : text };
    })
    .filter((one) => one.kind === "mark" || one.text !== "");
}
