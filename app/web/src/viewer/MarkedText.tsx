import { Fragment } from "react";
import { pieces } from "./pieces";
import type { Span } from "./place";

interface MarkedTextProps {
  text: string;
  /** Where the text begins in its document, in code points. */
  start: number;
  /** In the document. */
  marks: readonly Span[];
}

/** A text with what is marked in it. */
export function MarkedText({ text, start, marks }: MarkedTextProps) {
  let at = 0;
  return pieces(text, start, marks).map((piece) => {
    const key = at;
    at += piece.text.length;
    return piece.marked ? <mark key={key}>{piece.text}</mark> : <Fragment key={key}>{piece.text}</Fragment>;
  });
}
