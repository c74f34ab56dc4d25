import { useLayoutEffect, useRef } from "react";
import { MarkedText } from "./MarkedText";
import type { Span } from "./place";
import { useWidth } from "./useWidth";

interface MarkedQuoteProps {
  text: string;
  /** Where the text begins in its document, in code points; marks count from there too. */
  start: number;
  marks: readonly Span[];
}

/** Words of a document; what is marked in them is in sight first, for a long quote scrolls. */
export function MarkedQuote({ text, start, marks }: MarkedQuoteProps) {
  const quote = useRef<HTMLQuoteElement>(null);
  const width = useWidth(quote);
  const first = marks[0]?.start;

  // biome-ignore lint/correctness/useExhaustiveDependencies: other words or marks, or lines of another width, are elsewhere
  useLayoutEffect(() => {
    const room = quote.current;
    if (room === null) return;
    const found = [...room.querySelectorAll("mark")].map((mark) => mark.getBoundingClientRect());
    const [top, bottom] = [found[0]?.top, found.at(-1)?.bottom];
    if (top === undefined || bottom === undefined) return;
    const lines = room.getBoundingClientRect();
    // What is in sight stays where it is.
    if (bottom > lines.bottom || top < lines.top) room.scrollTop += top - lines.top;
  }, [text, first, width]);

  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a long one scrolls, which must be possible by keyboard
    <blockquote ref={quote} dir="auto" tabIndex={0}>
      <MarkedText text={text} start={start} marks={marks} />
    </blockquote>
  );
}
