/** A question and its answer, with what can be done with it. */
import { memo, useId, useMemo } from "react";
import type { Feedback } from "../api/types";
import { t } from "../strings";
import { CopyButton } from "../ui/CopyButton";
import { ProblemNote } from "../ui/ProblemNote";
import { WatchButton } from "../watches/WatchButton";
import { AnswerBody } from "./AnswerBody";
import { Editable } from "./Editable";
import { FeedbackButtons } from "./FeedbackButtons";
import { HowMade } from "./HowMade";
import { answerAsMarkdown } from "./markdownCopy";
import { exactIn } from "./parts";
import type { OpenPassage } from "./places";
import { Refusal, Unsure } from "./Refusal";
import { ScopeChips } from "./ScopeChips";
import { SourceCards } from "./SourceCards";
import { isEverything } from "./scope";
import { isReading, isRunning, isUnsure, partsIn, quotedTurn, searchedFor, type Turn } from "./turn";

interface TurnViewProps {
  conversation: string | null;
  turn: Turn;
  last: boolean;
  /** What its reader said of the answer; undefined where there is nothing to say: it is not kept, or not theirs. */
  feedback: Feedback | null | undefined;
  onOpen: OpenPassage;
  /** Asks the same again; null while another answer is written. */
  onAgain: (() => void) | null;
  /** Asks something else from here, as it is where it stands alone; null while another answer is written. */
  onAsk: ((question: string, alone: boolean) => void) | null;
  onEverywhere: (() => void) | null;
}

export const TurnView = memo(TurnBody, (before, after) => {
  // What is asked again depends on what is shown, so that alone decides whether an old answer is drawn again.
  const same = before.turn === after.turn && before.last === after.last;
  return (
    same &&
    before.conversation === after.conversation &&
    before.feedback === after.feedback &&
    (before.onAgain === null) === (after.onAgain === null) &&
    (before.onAsk === null) === (after.onAsk === null) &&
    (before.onOpen === null) === (after.onOpen === null)
  );
});

function TurnBody({ conversation, turn, last, feedback, onOpen, onAgain, onAsk, onEverywhere }: TurnViewProps) {
  const words = t.ask.turn;
  const id = useId();
  const running = isRunning(turn);
  const searched = searchedFor(turn);
  const unsure = isUnsure(turn) && turn.text !== "";
  const refused = turn.ending?.answered === false && turn.state === "done" && !unsure;
  return (
    <article className="ask-turn" aria-labelledby={id}>
      <div className="ask-question">
        <Editable
          text={turn.question}
          label={words.edit}
          button={words.editQuestion}
          onAsk={onAsk === null ? null : (question) => onAsk(question, turn.alone)}
        >
          <h2 id={id}>
            <span className="visually-hidden">{words.you}: </span>
            {turn.question}
          </h2>
        </Editable>
        {!isEverything(turn.scope) && (
          <div className="row small">
            <span className="quiet">{words.only}</span>
            <ScopeChips scope={turn.scope} />
          </div>
        )}
      </div>
      {turn.passages.length > 0 && <SourceCards turn={turn} onOpen={onOpen} />}
      <div className="ask-answer" aria-busy={running}>
        <h3 className="visually-hidden">{words.answer}</h3>
        {searched !== null && (
          <Editable
            text={searched}
            label={words.editSearched}
            button={words.editSearched}
            onAsk={onAsk === null ? null : (question) => onAsk(question, true)}
          >
            <p className="quiet small">{words.searchedFor(searched)}</p>
          </Editable>
        )}
        {refused && <Refusal turn={turn} onOpen={onOpen} onEverywhere={last ? onEverywhere : null} />}
        {unsure && <Unsure turn={turn} onOpen={onOpen} onEverywhere={last ? onEverywhere : null} />}
        {!refused && !unsure && turn.text !== "" && <AnswerBody turn={turn} onOpen={onOpen} />}
        {running && (turn.stopping || !isReading(turn) || turn.quotes !== null) && <Waiting turn={turn} />}
        <Quoted turn={turn} onOpen={onOpen} />
        <Ended turn={turn} onAgain={last || turn.state === "interrupted" ? onAgain : null} />
        {turn.usage !== null && !running && (
          <HowMade turn={turn} usage={turn.usage} kept={conversation !== null && turn.state === "done"} />
        )}
        {!running &&
          turn.state !== "interrupted" &&
          (turn.text !== "" || turn.state === "stopped" || feedback !== undefined) && (
            <div className="ask-actions">
              {turn.text !== "" && !refused && (
                <CopyButton
                  className="plain small"
                  text={answerAsMarkdown(turn.text, turn.citations, exactIn(partsIn(turn)))}
                  label={words.copy}
                />
              )}
              {last && onAgain !== null && turn.state !== "failed" && (
                <button type="button" className="plain small" onClick={onAgain}>
                  {words.again}
                </button>
              )}
              {conversation !== null && turn.state === "done" && !refused && (
                <WatchButton question={searched ?? turn.question} scope={turn.scope} />
              )}
              {conversation !== null && turn.requestId !== null && feedback !== undefined && (
                <FeedbackButtons conversation={conversation} requestId={turn.requestId} said={feedback} />
              )}
            </div>
          )}
      </div>
    </article>
  );
}

/** What the documents say themselves: open while a model words the answer, then folded below it. */
function Quoted({ turn, onOpen }: { turn: Turn; onOpen: OpenPassage }) {
  const quoted = useMemo(() => quotedTurn(turn), [turn]);
  if (quoted === null) return null;
  return (
    <details className="ask-before" open={isRunning(turn) || turn.text === ""}>
      <summary className="quiet small">{t.ask.turn.quotedBefore}</summary>
      <AnswerBody turn={quoted} onOpen={onOpen} />
    </details>
  );
}

function Waiting({ turn }: { turn: Turn }) {
  const words = t.ask.turn;
  const what = turn.stopping
    ? t.ask.composer.stopping
    : turn.state === "waiting"
      ? words.waitingFor(turn.waitingFor ?? words.waitingForModels)
      : turn.state === "searching"
        ? words.starting
        : turn.citations.length > 0
          ? words.checking
          : words.writing;
  return (
    <p className="ask-waiting quiet">
      <span className="ask-pulse" aria-hidden="true" /> {what}
    </p>
  );
}

/** Why an answer is not whole, where it is not. */
function Ended({ turn, onAgain }: { turn: Turn; onAgain: (() => void) | null }) {
  const words = t.ask.turn;
  if (turn.state === "failed") {
    return <ProblemNote problem={turn.problem} {...(onAgain !== null ? { onRetry: onAgain } : {})} />;
  }
  if (turn.state === "interrupted") {
    return (
      <div className="ask-note">
        <p>{words.interrupted}</p>
        {onAgain !== null && (
          <button type="button" onClick={onAgain}>
            {words.askAgain}
          </button>
        )}
      </div>
    );
  }
  if (turn.state === "stopped")
    return <p className="ask-note">{turn.text === "" ? words.stoppedEmpty : words.stopped}</p>;
  if (turn.ending?.finish_reason === "length") return <p className="ask-note">{words.cut}</p>;
  if (turn.ending?.finish_reason === "repetition") return <p className="ask-note">{words.circled}</p>;
  return null;
}
