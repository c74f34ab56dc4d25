/** The rows of a table: a document in each, a question in each column. It scrolls in a box of its own. */
import { useId } from "react";
import { Link } from "wouter";
import type { AnswerTable, TableRow } from "../api/types";
import type { OpenPassage } from "../ask/places";
import { FileName } from "../ui/FileName";
import { AnswerCell } from "./AnswerCell";
import { words } from "./strings";

interface AnswerGridProps {
  name: string;
  questions: AnswerTable["questions"];
  rows: readonly TableRow[];
  onOpen: OpenPassage;
}

export function AnswerGrid({ name, questions, rows, onOpen }: AnswerGridProps) {
  const caption = useId();
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by keyboard, too
    <section className="answer-grid" aria-labelledby={caption} tabIndex={0}>
      <table>
        <caption id={caption} className="visually-hidden">
          {words.grid(name)}
        </caption>
        <thead>
          <tr>
            <th scope="col">{words.document}</th>
            {questions.map(({ name: column, question }) => (
              <th key={column} scope="col" dir="auto">
                {column}
                {question !== column && <span className="asked">{question}</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ document_id: document, filename, cells }) => (
            <tr key={document}>
              <th scope="row">
                <Link href={`/documents/${document}`}>
                  <FileName name={filename} />
                </Link>
              </th>
              {cells.map((cell, at) => (
                <td key={questions[at]?.name}>
                  <AnswerCell cell={cell} onOpen={onOpen} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
