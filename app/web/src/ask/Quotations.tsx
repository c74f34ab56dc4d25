/** What documents say and no model wrote: the words that answer in large type, and sentences as they stand there,
 * whatever Markdown would make of them. */
import { Fragment, type ReactNode } from "react";
import type { Citation } from "../api/types";
import { t } from "../strings";
import { codePoints } from "../viewer/codePoints";
import { MarkedText } from "../viewer/MarkedText";
import { Badge } from "./Confirmation";
import { useGone } from "./gone";
import { PassageLink } from "./PassageLink";
import { standingOf } from "./parts";
import { pageWords } from "./places";
import type { Segment, Span } from "./segments";

type RenderMark = (mark: Extract<Segment, { kind: "mark" }>) => ReactNode;

/** The answer in a few words, with its footnote. */
export function Lead({ segments, renderMark }: { segments: readonly Segment[]; renderMark: RenderMark }) {
  return (
    <p className="ask-lead" dir="auto">
      {segments.map((segment, at) => {
        const key = `${at}`;
        if (segment.kind === "mark") return <Fragment key={key}>{renderMark(segment)}</Fragment>;
        if (!segment.marked) return <Fragment key={key}>{segment.text}</Fragment>;
        return <strong key={key}>{segment.text}</strong>;
      })}
    </p>
  );
}

interface QuotationsProps {
  quotes: readonly (readonly Segment[])[];
  /** All of the answer's; marks name their places in it. */
  citations: readonly Citation[];
  /** What is said of them where they stand behind a model's text. */
  caption?: string;
  renderMark: RenderMark;
  onOpen: ((citation: Citation) => void) | null;
}

export function Quotations({ quotes, citations, caption, renderMark, onOpen }: QuotationsProps) {
  return (
    <div className="ask-quoted">
      {caption !== undefined && <p className="quiet small">{caption}</p>}
      {quotes.map((quote, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: quotes do not change places
        <figure key={place} className="ask-quote">
          <blockquote dir="auto">
            <MarkedText {...textOf(quote)} start={0} />
            {quote.map((one) => one.kind === "mark" && <Fragment key={one.citation}>{renderMark(one)}</Fragment>)}
          </blockquote>
          <figcaption className="small">
            {citedIn(quote, citations).map((citation) => (
              <Source key={citation.answer_start} citation={citation} onOpen={onOpen} />
            ))}
          </figcaption>
        </figure>
      ))}
    </div>
  );
}

/** Where a quote stands, and whether it is known to answer. */
function Source({ citation, onOpen }: { citation: Citation; onOpen: QuotationsProps["onOpen"] }) {
  const page = pageWords(citation);
  const { filename, document_id } = citation;
  const standing = standingOf(citation, true, useGone().has(document_id));
  if (standing === "gone") {
    return (
      <>
        <span className="quiet">{page === "" ? filename : `${filename}, ${page}`}</span>
        <Badge citation={citation} standing={standing} />
      </>
    );
  }
  if (standing === "exact" && page === "") {
    return (
      <PassageLink passage={citation} onOpen={onOpen}>
        {t.ask.footnote.wordForWord(filename, page)}
      </PassageLink>
    );
  }
  return (
    <>
      <PassageLink passage={citation} onOpen={onOpen}>
        {standing === "exact" || page === "" ? filename : `${filename}, ${page}`}
      </PassageLink>
      <Badge citation={citation} standing={standing} />
    </>
  );
}

/** The words of a quote without its footnotes, and which of them answer. */
function textOf(quote: readonly Segment[]): { text: string; marks: Span[] } {
  const marks: Span[] = [];
  let text = "";
  let at = 0;
  for (const one of quote) {
    if (one.kind === "mark") continue;
    const end = at + codePoints(one.text);
    if (one.marked) marks.push({ start: at, end });
    text += one.text;
    at = end;
  }
  return { text, marks };
}

function citedIn(quote: readonly Segment[], citations: readonly Citation[]): Citation[] {
  return quote.flatMap((one) => (one.kind === "mark" && one.citation !== null ? (citations[one.citation] ?? []) : []));
}
