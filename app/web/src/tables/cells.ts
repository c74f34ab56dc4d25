/** A cell in what is shown of it: how it stands, its text without marks, and its footnotes. */
import type { AnswerTable, AnswerTablePage, Citation, TableAnswer, TableCell } from "../api/types";
import { segmentsOf } from "../ask/segments";

export type Standing =
  | "confirmed"
  | "exact"
  | "unconfirmed"
  | "unsure"
  | "unanswered"
  | "failed"
  | "waiting"
  | "asking";

export interface CellText {
  /** The line that gives the answer in a few words; "" without one. */
  lead: string;
  /** What follows: the sentence it is from, or all of the answer. */
  rest: string;
}

const OPEN: ReadonlySet<TableCell["state"]> = new Set(["waiting", "asking"]);

export function standingOfCell({ state, answer }: TableCell): Standing {
  if (state === "answered" && answer !== null) {
    if (answer.verified) return "confirmed";
    return footnotesOf(answer).every((one) => isQuoted(one, answer)) ? "exact" : "unconfirmed";
  }
  if (state === "answered") return "unconfirmed";
  return state === "refused" ? "unanswered" : state;
}

/** The text of an answer: without the marks of its footnotes, and without Markdown's of bold and of quotations. */
export function cellText(answer: Pick<TableAnswer, "answer" | "citations" | "value">): CellText {
  const [first = "", ...others] = withoutMarks(answer).split(/\n{2,}/);
  const leads = answer.value !== null && first.startsWith("**");
  const lead = leads ? plain(first) : "";
  const rest = plain((leads ? others : [first, ...others]).join("\n\n"));
  return { lead, rest: rest === lead ? "" : rest };
}

/** The footnotes, each once, in the order in which the answer names them. */
export function footnotesOf(answer: Pick<TableAnswer, "citations">): Citation[] {
  const ordered = citedBy(answer).toSorted((one, other) => one.answer_start - other.answer_start);
  return [...new Map(ordered.map((one) => [one.index, one])).values()];
}

/** Whether the answer has the words of a footnote's passage as they stand there. */
export function isQuoted(
  { cited_text: passage }: Citation,
  answer: Pick<TableAnswer, "answer" | "citations">,
): boolean {
  return spaced(plain(withoutMarks(answer))).includes(spaced(plain(passage)));
}

/** A text's beginning of at most so many characters, up to a word's end; null where all of it is no longer. */
export function beginningOf(text: string, most: number): string | null {
  const points = Array.from(text);
  if (points.length <= most) return null;
  const cut = points.slice(0, most).join("");
  const end = cut.search(/\s\S*$/);
  return `${(end > most / 2 ? cut.slice(0, end) : cut).trimEnd()}…`;
}

/** Cells that have been asked. */
export function doneOf({ progress }: Pick<AnswerTable, "progress">): number {
  return progress.total - progress.waiting - progress.asking;
}

/** What its user can have done with it: `resume` goes on, `retry` asks again what failed. */
export function nextOf({ state, progress }: Pick<AnswerTable, "state" | "progress">): "resume" | "retry" | null {
  if (state === "stopped") return "resume";
  return state === "finished" && progress.failed > 0 ? "retry" : null;
}

/** Whether a cell of the page may still get an answer by itself. */
export function isFilling({ state, rows }: Pick<AnswerTablePage, "state" | "rows">): boolean {
  return state === "running" && rows.data.some(({ cells }) => cells.some((cell) => OPEN.has(cell.state)));
}

/** Whether no cell of the page can change any more. */
export function isSettled({ rows }: Pick<AnswerTablePage, "rows">): boolean {
  return rows.data.every(({ cells }) => cells.every(({ state }) => !OPEN.has(state) && state !== "failed"));
}

function citedBy({ citations }: Pick<TableAnswer, "citations">): Citation[] {
  return citations as unknown as Citation[];
}

function withoutMarks(answer: Pick<TableAnswer, "answer" | "citations">): string {
  return segmentsOf(answer.answer, citedBy(answer))
    .map((one, at, all) => {
      if (one.kind === "mark") return "";
      return all[at + 1]?.kind === "mark" ? one.text.trimEnd() : one.text;
    })
    .join("");
}

function spaced(text: string): string {
  return text.replace(/\s+/g, " ");
}

function plain(text: string): string {
  return text.replace(/\*\*/g, "").replace(/^> ?/gm, "").trim();
}
