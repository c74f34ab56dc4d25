import { Fragment } from "react";
import { type Cell, isAmount, proseAndTables, type Table } from "./cells";
import { codePoints } from "./codePoints";
import { pieces } from "./pieces";
import type { Span } from "./place";
import "./table.css";

export interface Marks {
  /** In the document. */
  marks: readonly Span[];
  /** What the marks are a part of, in the document. */
  around?: Span | null;
}

const NO_MARKS: readonly never[] = [];

interface MarkedTextProps extends Partial<Marks> {
  text: string;
  /** Where the text begins in its document, in code points. */
  start: number;
}

/** A text with what is marked in it; its tables are shown as tables. */
export function MarkedText({ text, start, marks: marked = NO_MARKS, around = null }: MarkedTextProps) {
  const marks = { marks: marked, around };
  return proseAndTables(text, start).map((part) =>
    part.kind === "table" ? (
      <Rows key={part.start} table={part} {...marks} />
    ) : (
      <Words key={part.start} cell={part} {...marks} />
    ),
  );
}

function Rows({ table, ...marks }: { table: Table } & Marks) {
  return (
    <table className="text-table">
      {table.names !== null && (
        <thead>
          <tr>
            {table.names.map((name, at) => (
              <th key={name?.start ?? -at} scope="col">
                {name !== null && <Words cell={name} {...marks} />}
              </th>
            ))}
          </tr>
        </thead>
      )}
      <tbody>
        {table.rows.map((row, number) => (
          <tr key={row[0]?.start ?? -number}>
            {row.map((cell, at) => (
              <td key={cell?.start ?? -at} className={cell !== null && isAmount(cell.text) ? "amount" : undefined}>
                {cell !== null && <Words cell={cell} {...marks} />}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Words of a document with what is marked in them. */
export function Words({ cell, marks, around = null }: { cell: Cell } & Marks) {
  let at = cell.start;
  return pieces(cell.text, cell.start, around === null ? [] : [around]).map((piece) => {
    const start = at;
    at += codePoints(piece.text);
    const words = <Marked key={start} text={piece.text} start={start} marks={marks} />;
    return piece.marked ? (
      <span key={start} className="text-around">
        {words}
      </span>
    ) : (
      words
    );
  });
}

function Marked({ text, start, marks }: { text: string; start: number; marks: readonly Span[] }) {
  let at = 0;
  return pieces(text, start, marks).map((piece) => {
    const key = at;
    at += piece.text.length;
    return piece.marked ? <mark key={key}>{piece.text}</mark> : <Fragment key={key}>{piece.text}</Fragment>;
  });
}
