import { t } from "../strings";
import { MarkedQuote } from "./MarkedQuote";
import type { Span } from "./place";

interface QuoteProps {
  text: string;
  pages: string | null;
  /** Where the text begins in its document, in code points. */
  start: number;
  /** Sentences of it that matter most, in the document. */
  marks: readonly Span[];
}

/** The words of the passage, and on which pages they stand. */
export function Quote({ text, pages, start, marks }: QuoteProps) {
  return (
    <figure className="quote">
      <figcaption className="small quiet">
        {t.viewer.quote}
        {pages !== null && ` · ${pages}`}
      </figcaption>
      <MarkedQuote text={text} start={start} marks={marks} />
    </figure>
  );
}
