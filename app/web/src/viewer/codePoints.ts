/** Offsets of the API count Unicode code points; a JavaScript string counts UTF-16 units, of which an emoji has two. */

/** How many code points a text has. */
export function codePoints(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** Where in a text's units its code point number `offset` begins; its length where there are fewer. */
export function unitAt(text: string, offset: number): number {
  let unit = 0;
  let left = offset;
  for (const char of text) {
    if (left <= 0) break;
    unit += char.length;
    left -= 1;
  }
  return unit;
}

/** A text in three: before the code points `[start, end)`, these, and after them. */
export function parted(text: string, start: number, end: number): [string, string, string] {
  const from = unitAt(text, Math.max(start, 0));
  const to = from + unitAt(text.slice(from), Math.max(end - Math.max(start, 0), 0));
  return [text.slice(0, from), text.slice(from, to), text.slice(to)];
}
