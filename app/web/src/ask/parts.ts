/** An answer in its parts: the words that lead it, what is written, and what it quotes. Offsets count code points. */
import type { Citation, QuotedSpan } from "../api/types";
import { type Segment, type Span, segmentsOf } from "./segments";

export interface Parts {
  /** The line that gives the answer in a few words, marked; empty without one. */
  lead: Segment[];
  /** Markdown: a model's text, or a sentence that introduces the quotes. */
  written: Segment[];
  /** Sentences of documents as they stand there, likeliest first; the words that answer are marked. */
  quotes: Segment[][];
  /** Which citations stand at a document's own words, by their place in the list. */
  exact: ReadonlySet<number>;
}

/** What the server tells of an answer's parts. */
export interface Told {
  lead: Span | null;
  uncited: readonly Span[];
  quoted: readonly QuotedSpan[];
}

type Place = Pick<Citation, "index" | "answer_start" | "answer_end">;

const NOTHING: Told = { lead: null, uncited: [], quoted: [] };
/** What stands before a quotation on its line, and the empty lines above it. */
const BEFORE_QUOTE = /(?:^|\n)[\s>“]*$/u;
const SAYS = /[\p{L}\p{N}]/u;
/** Two letters beside each other, or a number with its unit. What has neither, such as a reference, quotes nothing. */
const WORD = /\p{L}\p{M}*\p{L}|\p{N}\s?[\p{L}\p{Sc}%‰°]|\p{Sc}\s?\p{N}|[\p{sc=Han}]/u;

/** The parts of a whole answer. What is told of no place in it is passed over. */
export function partsOf(answer: string, citations: readonly Place[], told: Told | null): Parts {
  const { lead, uncited, quoted } = told ?? NOTHING;
  const points = Array.from(answer);
  const spans = [...quoted].filter((span) => isIn(span, points)).sort((one, other) => one.start - other.start);
  const first = spans[0]?.start ?? points.length;
  const end = spans.length === 0 ? first : startOfQuotation(points, first);
  const line = lead !== null && isIn(lead, points) && lead.end <= end ? lineOf(points, lead, end) : null;
  const part = (from: number, to: number) => segmentsOf(answer, citations, uncited, { start: from, end: to });
  const before = line === null ? [] : part(0, line.start);
  const written = [...before, ...part(line?.end ?? 0, end)];
  const quotes: Segment[][] = [];
  spans.forEach((span, at) => {
    const next = spans[at + 1]?.start ?? points.length;
    const shown = marked(segmentsOf(answer, citations, span.highlights ?? [], span));
    const startsLine = span.start === 0 || points[span.start - 1] === "\n";
    const behind = part(span.end, next);
    quotes.push(...quotesIn([...withoutSigns(shown, startsLine), ...behind.filter((one) => one.kind === "mark")]));
    // No other words pass for a document's.
    written.push(...behind.filter((one) => one.kind === "text" && SAYS.test(one.text)));
  });
  const leads = line === null || lead === null ? [] : leadOf(marked(segmentsOf(answer, citations, [lead], line)));
  const pure = leads.every((one) => one.kind === "mark" || one.marked || !SAYS.test(one.text));
  const kept = withoutEmptyQuotes(written);
  // A quote that is not shown has no footnote either.
  const hidden = written.filter((one) => one.kind === "mark" && !kept.includes(one));
  const cited = [...quotes, hidden, ...(pure ? [leads] : [])].flat();
  return {
    lead: leads,
    written: kept.some((one) => one.kind === "mark" || one.text.trim() !== "") ? kept : [],
    quotes: quotes.filter(holdsWord),
    exact: new Set(cited.flatMap((one) => (one.kind === "mark" && one.citation !== null ? [one.citation] : []))),
  };
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

export type Standing = "confirmed" | "exact" | "unconfirmed" | "gone";

/** What may be said of a footnote. A document's own words are confirmed only where they are known to answer: of older
 * answers it is not. Nothing is confirmed by a document that is `gone`: nobody can look. */
export function standingOf(
  { verified, answers }: Pick<Citation, "verified" | "answers">,
  exact: boolean,
  gone = false,
): Standing {
  if (gone) return "gone";
  if (!exact) return verified ? "confirmed" : "unconfirmed";
  return verified && answers != null ? "confirmed" : "exact";
}

function isIn({ start, end }: Span, points: readonly string[]): boolean {
  return start >= 0 && start < end && end <= points.length;
}

/** Where the lines of a quotation begin whose sentence begins at `at`. */
function startOfQuotation(points: readonly string[], at: number): number {
  const before = points.slice(0, at).join("");
  return Array.from(before.replace(BEFORE_QUOTE, "")).length;
}

function lineOf(points: readonly string[], { start, end }: Span, last: number): Span {
  const newline = points.indexOf("\n", end);
  const from = start === 0 ? 0 : points.lastIndexOf("\n", start - 1) + 1;
  return { start: from, end: newline < 0 ? last : Math.min(newline, last) };
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

/** Quoted text without Markdown's signs of a quotation at the start of its lines. */
function withoutSigns(segments: readonly Segment[], startsLine: boolean): Segment[] {
  let atStart = startsLine;
  return segments.map((one) => {
    if (one.kind === "mark") return one;
    const text = (atStart ? one.text.replace(/^>(?: |$)/, "") : one.text).replace(/\n>(?: |(?=\n|$))/g, "\n");
    atStart = one.text.endsWith("\n");
    return { ...one, text };
  });
}

/** Sentences one by one: each ends with its footnotes. */
function quotesIn(segments: readonly Segment[]): Segment[][] {
  const quotes: Segment[][] = [[]];
  for (const segment of segments) {
    if (segment.kind === "text" && quotes.at(-1)?.at(-1)?.kind === "mark" && SAYS.test(segment.text)) quotes.push([]);
    quotes.at(-1)?.push(segment);
  }
  return quotes.map(trimmed).filter((quote) => quote.some((one) => one.kind === "text"));
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
