/** A question and the answer to it, as it comes: each event of the stream makes the next state. */
import type { ServerEvent } from "../api/events";
import { Problem } from "../api/http";
import type {
  Citation,
  Done,
  Interrupted,
  Turn as KeptTurn,
  Part,
  QuotesEvent,
  SourcePassage,
  Sources,
  SourcesEvent,
  Usage,
} from "../api/types";
import { codePoints } from "../viewer/codePoints";
import type { Scope } from "./scope";
import { EVERYTHING } from "./scope";

/** How an answer ended, in the server's words, and what its text consists of; an old one does not tell all of it. */
export type Ending = Partial<Done> & Pick<Done, "answered" | "parts">;

export interface Turn {
  /** What it is known by while the page is open. */
  key: string;
  /** What the server knows it by, null until it has answered. */
  requestId: string | null;
  question: string;
  scope: Scope;
  /** Whether it was asked as it is, whatever was said before. */
  alone: boolean;
  /** `waiting`: the server is not ready yet. `interrupted`: it stopped while it answered. */
  state: "waiting" | "searching" | "writing" | "done" | "stopped" | "failed" | "interrupted";
  /** What is waited for, in words. */
  waitingFor: string | null;
  stopping: boolean;
  text: string;
  sources: Sources | null;
  /** What is read for the answer; none where the server has kept the answer. */
  passages: readonly SourcePassage[];
  citations: Citation[];
  /** What documents say themselves, told before a model words the answer; null where nothing was told. */
  quotes: QuotesEvent | null;
  usage: Usage | null;
  ending: Ending | null;
  problem: unknown;
}

export function newTurn(key: string, question: string, scope: Scope, alone = false): Turn {
  return {
    key,
    requestId: null,
    question,
    scope,
    alone,
    state: "searching",
    waitingFor: null,
    stopping: false,
    text: "",
    sources: null,
    passages: [],
    citations: [],
    quotes: null,
    usage: null,
    ending: null,
    problem: null,
  };
}

/** Whether the documents do not clearly answer, so that the nearest passages are shown. */
export function isUnsure({ ending, state }: Turn): boolean {
  return state === "done" && ending?.answered === false && ending.reason === "unsure";
}

/** The question that was searched for, where it is not the one that was asked. */
export function searchedFor(turn: Turn): string | null {
  const standalone = turn.ending?.standalone_question ?? null;
  return standalone === turn.question ? null : standalone;
}

/** The language of the passages, by its own name, where the server notes that it is not the question's; else null. */
export function languageFound(turn: Turn): string | null {
  for (const part of turn.ending?.parts ?? []) if (part.kind === "note" && part.language !== null) return part.language;
  return null;
}

export function isRunning(turn: Turn): boolean {
  return turn.state === "waiting" || turn.state === "searching" || turn.state === "writing";
}

/** Whether the passages are known and nothing of the answer is. */
export function isReading(turn: Turn): boolean {
  return turn.state === "writing" && turn.text === "" && turn.passages.length > 0;
}

/** The turn after an event of its stream; what is not known is passed over. */
export function applied(turn: Turn, { event, data }: ServerEvent): Turn {
  const body: unknown = JSON.parse(data);
  switch (event) {
    case "sources": {
      const { passages, ...sources } = body as SourcesEvent;
      return { ...turn, state: "writing", sources, passages };
    }
    case "quotes":
      return { ...turn, quotes: body as QuotesEvent };
    case "delta":
      return { ...turn, state: "writing", text: turn.text + (body as { text: string }).text };
    case "citation":
      return { ...turn, citations: [...turn.citations, body as Citation] };
    case "usage":
      return { ...turn, usage: body as Usage };
    case "done":
      return ended(turn, body as Done);
    case "error":
      return { ...turn, state: "failed", problem: problemIn(body as ProblemBody) };
    default:
      return turn;
  }
}

function ended(turn: Turn, done: Done): Turn {
  // Sources are told before anything is cited.
  const cited = [...new Set(turn.citations.map((citation) => citation.chunk_id))];
  return {
    ...turn,
    state: done.finish_reason === "cancelled" ? "stopped" : "done",
    sources: turn.sources === null ? null : { ...turn.sources, cited },
    ending: done,
  };
}

interface ProblemBody {
  type?: string;
  title?: string;
  status?: number;
  detail?: string;
  instance?: string;
}

function problemIn(body: ProblemBody): Problem {
  const { type = "about:blank", title = "", status = 500, detail = "", instance = null } = body;
  return new Problem(status, type, title, detail, null, instance, null, { ...body });
}

/** A turn the server has kept, with how its answer was made unless it is an old one. */
export function keptTurn(kept: KeptTurn): Turn {
  const { making } = kept;
  return {
    ...newTurn(kept.request_id, kept.question, EVERYTHING),
    requestId: kept.request_id,
    state: "done",
    text: kept.answer,
    citations: kept.citations.filter(isCitation),
    sources: making?.sources ?? null,
    usage: making?.usage ?? null,
    ending: {
      ...making,
      answered: kept.answered,
      standalone_question: kept.standalone_question,
      parts: making?.parts ?? [wholly(kept.answer)],
    },
  };
}

/** The quotes of a turn as an answer of their own; null where the answer itself quotes, or they were not told. */
export function quotedTurn(turn: Turn): Turn | null {
  const { quotes } = turn;
  if (quotes === null || turn.ending?.parts.some((part) => part.kind === "quote") === true) return null;
  const { answer: text, citations, answered, parts } = quotes;
  return { ...turn, state: "done", text, citations, ending: { answered, parts } };
}

/** What the text of a turn consists of, also where it has not ended. */
export function partsIn({ ending, text }: Turn): readonly Part[] {
  return ending?.parts ?? [wholly(text)];
}

/** The one part of an answer of which nothing more is known. */
function wholly(answer: string): Part {
  return { kind: "prose", start: 0, end: codePoints(answer), citations: [], uncited: [] };
}

/** A question whose answer was lost with the server that wrote it. */
function interruptedTurn(lost: Interrupted): Turn {
  return { ...newTurn(lost.request_id, lost.question, EVERYTHING), requestId: lost.request_id, state: "interrupted" };
}

/** What the server has kept and what was asked here, in order. Of a turn both know, what is here says more. An
 * interrupted question that was asked here, or is asked again, is shown as that. */
export function mergedTurns(
  kept: readonly KeptTurn[],
  here: readonly Turn[],
  interrupted: readonly Interrupted[] = [],
): Turn[] {
  const lost = interrupted.filter(({ question }) => !here.some((turn) => turn.question === question));
  const turns = withKept(kept, here);
  for (const one of lost) {
    const after = kept.findLast(({ created_at }) => created_at <= one.created_at);
    const at = after === undefined ? 0 : turns.findIndex(({ requestId }) => requestId === after.request_id) + 1;
    const behind = turns.findIndex((turn, place) => place >= at && turn.state !== "interrupted");
    turns.splice(behind < 0 ? turns.length : behind, 0, interruptedTurn(one));
  }
  return turns;
}

function withKept(kept: readonly KeptTurn[], here: readonly Turn[]): Turn[] {
  const turns: Turn[] = [];
  let next = 0;
  for (const one of kept) {
    const at = here.findIndex((turn) => turn.requestId === one.request_id);
    if (at < 0) {
      turns.push(keptTurn(one));
      continue;
    }
    if (at >= next) {
      turns.push(...here.slice(next, at + 1));
      next = at + 1;
    }
  }
  return [...turns, ...here.slice(next)];
}

const FIELDS: Record<keyof Citation, string> = {
  index: "number",
  answer_start: "number",
  answer_end: "number",
  document_id: "string",
  version: "number",
  filename: "string",
  chunk_id: "string",
  page_start: "number?",
  page_end: "number?",
  start_char: "number",
  end_char: "number",
  cited_text: "string",
  verified: "boolean",
  support: "number",
  answers: "number??",
  section: "string??",
  sheet: "string??",
  cell: "string??",
  state: "string??",
  current_version: "number??",
  current_start_char: "number??",
  current_end_char: "number??",
  current_page_start: "number??",
  current_page_end: "number??",
  changes: "object??",
  origin: "string",
};

function isCitation(found: Record<string, unknown>): found is Citation {
  return Object.entries(FIELDS).every(([name, kind]) => {
    const value = found[name];
    const missing = (kind.endsWith("?") && value === null) || (kind.endsWith("??") && value === undefined);
    return missing || typeof value === kind.replace(/\?+$/, "");
  });
}
