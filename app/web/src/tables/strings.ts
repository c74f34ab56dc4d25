/** What the screens of tables say: the same questions, asked of each of many documents. It comes with them, so that the
 * page's first load does not have it. */
import type { AnswerTable } from "../api/types";
import { countText, momentText } from "../ui/numbers";
import type { Standing } from "./cells";

const standings: Record<Standing, string> = {
  confirmed: "Confirmed",
  exact: "Word for word",
  unconfirmed: "Not confirmed",
  unsure: "Unsure",
  unanswered: "No answer found",
  failed: "Failed",
  waiting: "Waiting",
  asking: "Being asked",
};

const states: Record<AnswerTable["state"], string> = {
  running: "Being filled",
  stopped: "Stopped",
  finished: "Finished",
};

const documents = (count: number) => (count === 1 ? "1 document" : `${countText(count)} documents`);
const questions = (count: number) => (count === 1 ? "1 question" : `${countText(count)} questions`);

export const words = {
  heading: "Tables",
  lead: "A table asks the same questions of each of many documents. Every cell is an answer with its own footnotes.",
  askEach: "Ask each document",
  askChosen: "Ask each of them",
  new: "New table",
  newHeading: "Ask each document",
  none: "You have no table yet.",
  listed: "Made before",
  questions: "Questions, one on each line",
  questionsHint: "A short name for a column goes before it: Law | Which law governs the agreement?",
  scopeHint: "Each question is asked of each of these documents.",
  size: (asked: number, of: number) => `${questions(asked)} × ${documents(of)}: ${countText(asked * of)} cells`,
  start: "Ask",
  wrong: {
    many: (most: number, found: number) => `A table has ${most} questions at most; these are ${countText(found)}.`,
    same: (name: string) => `Two columns are called “${name}”. Give each a name of its own.`,
    longName: (most: number, name: string) =>
      `A name has ${countText(most)} characters at most. This one is longer: “${name}”.`,
    longQuestion: (most: number) => `A question has ${countText(most)} characters at most.`,
  },
  name: (first: readonly string[], others: number) =>
    [...first, ...(others === 0 ? [] : [`${countText(others)} more`])].join(" · "),
  extent: (asked: number, of: number) => `${questions(asked)} × ${documents(of)}`,
  states,
  made: (at: string) => `made ${momentText(at)}`,
  done: (done: number, total: number) => `${countText(done)} of ${countText(total)} cells`,
  progress: "Cells that have been asked",
  counts: {
    answered: (count: number) => `${countText(count)} answered`,
    unsure: (count: number) => `${countText(count)} unsure`,
    refused: (count: number) => `${countText(count)} without an answer`,
    failed: (count: number) => `${countText(count)} failed`,
  },
  all: "All tables",
  tokens: (count: string) => `${count} tokens`,
  unpriced: (count: number) =>
    count === 1 ? "1 model call has no price" : `${countText(count)} model calls have no price`,
  resume: "Go on",
  retry: "Ask again what failed",
  stopped: "This table was stopped.",
  pausing: "This table waits.",
  others: (user: string) => `It belongs to ${user}, whose key pays. Only they can go on with it.`,
  remove: "Delete",
  removeTitle: "Delete this table?",
  removeBody: "All its answers are deleted for good. Your documents stay, and so does what it cost.",
  removeRunning:
    "It is stopped, and all its answers are deleted for good. Your documents stay, and so does what it cost.",
  removed: "Table deleted.",
  grid: (name: string) => `Answers: ${name}`,
  document: "Document",
  standings,
  whole: "Show all",
  part: "Show less",
  missing: "This table does not exist, or it is not yours to see.",
};
