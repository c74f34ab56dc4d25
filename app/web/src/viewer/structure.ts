/** A document's canonical text in the pieces that its blocks are: headings, lists, tables, paragraphs. No character is moved
 * or changed, so that a mark stands at the same words with and without the structure. */
import type { Cell } from "./cells";

/** What a piece of canonical text is; offsets count code points of the document. */
export interface Block {
  kind: "heading" | "paragraph" | "list_item" | "table_row" | "caption" | "code" | "furniture";
  start: number;
  end: number;
  /** Of a heading: 1 is outermost. */
  level: number;
}

export type StructuredPart =
  | (Cell & { kind: "heading"; level: number })
  | (Cell & { kind: "paragraph" | "caption" | "code" | "furniture" | "rows" })
  | { kind: "list"; start: number; items: Cell[] };

/** The blocks of slices that follow each other; one that was cut is in two of them. */
export function joinedBlocks(slices: readonly (readonly Block[])[]): Block[] {
  const found = new Map<number, Block>();
  for (const blocks of slices) for (const block of blocks) found.set(block.start, block);
  return [...found.values()].sort((one, other) => one.start - other.start);
}

/** The parts of a text that begins at the code point `start` of its document. Text of no block is a paragraph; white space
 * between the parts is left out. */
export function structured(text: string, start: number, blocks: readonly Block[]): StructuredPart[] {
  const points = Array.from(text);
  const parts: StructuredPart[] = [];
  let at = 0;

  /** The characters `[from, to)` without white space around them; null where there is nothing else. */
  function cell(from: number, to: number): Cell | null {
    let [first, last] = [from, to];
    while (first < last && isSpace(points[first])) first += 1;
    while (first < last && isSpace(points[last - 1])) last -= 1;
    return first === last ? null : { text: points.slice(first, last).join(""), start: start + first };
  }

  function add(kind: Block["kind"], level: number, found: Cell) {
    const last = parts.at(-1);
    if (kind === "list_item") {
      if (last?.kind === "list") last.items.push(found);
      else parts.push({ kind: "list", start: found.start, items: [found] });
    } else if (kind === "table_row") {
      if (last?.kind !== "rows") parts.push({ kind: "rows", ...found });
      // With what is between the rows: where a line ends is how rows are told apart.
      else last.text = points.slice(last.start - start, found.start - start).join("") + found.text;
    } else if (kind === "heading") parts.push({ kind, level, ...found });
    else parts.push({ kind, ...found });
  }

  for (const block of blocks) {
    const from = Math.max(block.start - start, at);
    const to = Math.min(block.end - start, points.length);
    if (to <= from) continue;
    const between = cell(at, from);
    if (between !== null) add("paragraph", 0, between);
    const found = cell(from, to);
    if (found !== null) add(block.kind, block.level, found);
    at = to;
  }
  const rest = cell(at, points.length);
  if (rest !== null) add("paragraph", 0, rest);
  return parts;
}

function isSpace(point: string | undefined): boolean {
  return point === undefined || point.trim() === "";
}
