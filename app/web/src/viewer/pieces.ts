/** A text in pieces: what is marked in it and what is not. */
import { parted } from "./codePoints";
import type { Span } from "./place";

export interface Piece {
  text: string;
  marked: boolean;
}

/** The pieces of a text that begins at the code point `start` of its document, joined they are the text.
 *
 * @param marks In the document, in order and apart from each other; what of them is not in the text is passed over.
 */
export function pieces(text: string, start: number, marks: readonly Span[]): Piece[] {
  const found: Piece[] = [];
  let rest = text;
  let at = start;
  for (const mark of marks) {
    const [before, marked, after] = parted(rest, mark.start - at, mark.end - at);
    if (marked === "") continue;
    if (before !== "") found.push({ text: before, marked: false });
    found.push({ text: marked, marked: true });
    rest = after;
    at = mark.end;
  }
  if (rest !== "") found.push({ text: rest, marked: false });
  return found;
}
