/** Tables in canonical text: each row is a line, ` | ` between its cells, which may repeat the names of their columns. */
import { codePoints } from "./codePoints";

/** Words of a table, and where in the document they begin, in code points. */
export interface Cell {
  text: string;
  start: number;
}

export interface Prose extends Cell {
  kind: "prose";
}

/** Rows of as many cells as there are columns; a cell without words is null. `names` are the columns'. */
export interface Table {
  kind: "table";
  start: number;
  names: readonly (Cell | null)[] | null;
  rows: readonly (readonly (Cell | null)[])[];
}

interface Line extends Cell {
  /** None where the line is no row. */
  cells: readonly Cell[];
}

const BAR = /(?<!\\)\|/g;
const RULE = /^:?-+:?$/;

/** A text that begins at the code point `start` of its document as prose and tables, in order.
 *
 * Two rows below each other are a table, and a row alone whose cells repeat the names of their columns. Of Markdown's rows
 * the one that underlines the names is left out.
 */
export function proseAndTables(text: string, start: number): (Prose | Table)[] {
  const parts: (Prose | Table)[] = [];
  const lines = linesOf(text, start);
  let prose: Line[] = [];
  let rows: Line[] = [];
  function close(next: Line | null) {
    const [first] = rows;
    const alone = rows.length === 1 && first !== undefined ? asLabelledRow(first) : null;
    if (rows.length > 1 || alone !== null) {
      if (prose.length > 0) parts.push(asProse(prose));
      parts.push(alone ?? asTable(rows));
      prose = [];
    } else {
      prose.push(...rows);
    }
    rows = [];
    if (next !== null) prose.push(next);
  }
  for (const line of lines) {
    if (line.cells.length > 0) rows.push(line);
    else close(line);
  }
  close(null);
  if (prose.length > 0) parts.push(asProse(prose));
  return parts;
}

function linesOf(text: string, start: number): Line[] {
  let at = start;
  return text.split("\n").map((line) => {
    const found = { text: line, start: at, cells: cellsOf(line, at) };
    at += codePoints(line) + 1;
    return found;
  });
}

function cellsOf(line: string, start: number): Cell[] {
  const framed = /^\s*\|.*\|\s*$/.test(line);
  if (!framed && !line.includes(" | ")) return [];
  const cells: Cell[] = [];
  let from = 0;
  for (const end of [...[...line.matchAll(BAR)].map((bar) => bar.index), line.length]) {
    const raw = line.slice(from, end);
    const blank = raw.length - raw.trimStart().length;
    cells.push({ text: raw.trim(), start: start + codePoints(line.slice(0, from + blank)) });
    from = end + 1;
  }
  return framed ? cells.slice(1, -1) : cells;
}

function asProse(lines: readonly Line[]): Prose {
  return { kind: "prose", text: lines.map((line) => line.text).join("\n"), start: lines[0]?.start ?? 0 };
}

function asTable(lines: readonly Line[]): Table {
  const [first, second, ...rest] = lines.map((line) => line.cells);
  const start = lines[0]?.start ?? 0;
  if (first === undefined || second === undefined) return { kind: "table", start, names: null, rows: [] };
  const ruled = second.every((cell) => RULE.test(cell.text));
  const below = ruled ? rest : [second, ...rest];
  const labelled = below.some((row) => row.some((cell) => first.some((name) => isLabelled(cell, name))));
  const named = ruled || labelled ? first : null;
  // A column of the rows' own names has none: the first cell of its rows repeats nothing, the next one the first name.
  const aside = labelled && !ruled && below.every((row) => isAside(row, first));
  const names = named !== null && aside ? [null, ...named] : named;
  const rows = (names === null ? [first, ...below] : below).map((row) => placed(row, names ?? []));
  const columns = Math.max(...[...rows, names ?? first].map((row) => row.length));
  return {
    kind: "table",
    start,
    names: names && padded(names, columns),
    rows: rows.map((row) => padded(row, columns)),
  };
}

/** As long as ingestion writes the names of columns into rows. */
const LABEL = /^([^:|]{1,120}): (?=\S)/;
const AMOUNT = /^[-–−+(]?[$€£¥]?[-–−]?\d[\d.,’' \u00a0]*(?:%|[kKmM]|bn)?\)?$/;

/** Whether a cell is a number or an amount, which stand one below the other at the right. */
export function isAmount(text: string): boolean {
  return AMOUNT.test(text);
}

/** A row that stands alone as a table, where at least two of its cells and all but the first repeat their column's name. */
function asLabelledRow({ start, cells }: Line): Table | null {
  const labels = cells.map(({ text }) => LABEL.exec(text)?.[1] ?? null);
  if (labels.filter((label) => label !== null).length < 2 || labels.slice(1).includes(null)) return null;
  const names = cells.map((cell, at) => {
    const label = labels[at] ?? null;
    return label === null ? null : { text: label, start: cell.start };
  });
  const row = cells.map((cell, at) => {
    const name = names[at] ?? null;
    if (name === null) return cell;
    return { text: cell.text.slice(name.text.length + 2), start: cell.start + codePoints(name.text) + 2 };
  });
  return { kind: "table", start, names, rows: [row] };
}

/** The cells of a row below the names of their columns, which they do not repeat then. */
function placed(row: readonly Cell[], names: readonly (Cell | null)[]): (Cell | null)[] {
  const cells: (Cell | null)[] = [];
  for (const cell of row) {
    const column = names.findIndex((name, at) => at >= cells.length && name !== null && isLabelled(cell, name));
    while (cells.length < column) cells.push(null);
    const label = column < 0 ? "" : `${names[column]?.text}: `;
    cells.push({ text: cell.text.slice(label.length), start: cell.start + codePoints(label) });
  }
  return cells;
}

/** Whether a row begins with a name of its own, before the cell of the first column that has a name. */
function isAside([own, next]: readonly Cell[], names: readonly Cell[]): boolean {
  const [first] = names;
  if (own === undefined || first === undefined || names.some((name) => isLabelled(own, name))) return false;
  return next === undefined || names.some((name) => isLabelled(next, name));
}

function isLabelled(cell: Cell, name: Cell): boolean {
  return name.text !== "" && cell.text.startsWith(`${name.text}: `);
}

function padded(row: readonly (Cell | null)[], columns: number): (Cell | null)[] {
  return [...row, ...Array<null>(columns - row.length).fill(null)];
}
