/** One conversation: what was asked and answered, and where the next question is written. */
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { Problem, request } from "../api/http";
import type { WholeConversation } from "../api/types";
import { useSession } from "../session/session";
import { t } from "../strings";
import { ProblemNote } from "../ui/ProblemNote";
import { Composer } from "./Composer";
import { ConversationHead, SharedNote } from "./ConversationHead";
import { GoneDocuments } from "./gone";
import { NextQuestions } from "./NextQuestions";
import type { NextQuestion } from "./nextQuestions";
import { PrintedPassages } from "./PrintedPassages";
import type { OpenPassage } from "./places";
import { refusalTitle } from "./Refusal";
import { type Runs, useDraft, useTurns } from "./runs";
import { EVERYTHING } from "./scope";
import { TurnView } from "./TurnView";
import { isReading, isRunning, isUnsure, mergedTurns, type Turn } from "./turn";
import { useFollowing } from "./useFollowing";
import { Welcome } from "./Welcome";

interface ConversationViewProps {
  conversation: string | null;
  runs: Runs;
  onBegun: (id: string) => void;
  onOpen: OpenPassage;
}

export function ConversationView({ conversation, runs, onBegun, onOpen }: ConversationViewProps) {
  const here = useTurns(runs, conversation);
  const draft = useDraft(runs, conversation);
  const kept = useQuery({
    queryKey: ["conversations", conversation],
    queryFn: ({ signal }) =>
      request<WholeConversation>(`v1/conversations/${encodeURIComponent(conversation ?? "")}`, { signal }),
    enabled: conversation !== null,
  });
  const turns = useMemo(() => mergedTurns(kept.data?.data ?? [], here, kept.data?.interrupted), [kept.data, here]);
  const last = turns.at(-1);
  const running = last !== undefined && isRunning(last) ? last : null;
  const { following, follow } = useFollowing(last, running !== null);
  const missing = kept.error instanceof Problem && kept.error.status === 404;
  const { user_id, role } = useSession();
  const shared = kept.data !== undefined && kept.data.user_id !== user_id && role !== "admin" ? kept.data : null;

  const mayAsk = running === null && shared === null;
  const gone = useMemo(() => new Set(kept.data?.deleted_documents), [kept.data]);
  const feedback = useMemo(() => new Map(kept.data?.data.map((turn) => [turn.request_id, turn.feedback])), [kept.data]);

  /** Asks what an earlier turn asked, changed or not, where that was looked for. */
  function askFrom(turn: Turn, question: string, alone: boolean) {
    follow();
    void runs.ask({ conversation, question, scope: turn.scope, length: draft.length, alone }, onBegun);
  }

  function askNext({ question, document }: NextQuestion) {
    follow();
    const scope = { ...EVERYTHING, documents: [document] };
    void runs.ask({ conversation, question, scope, length: draft.length, alone: true }, onBegun);
  }

  function ask(question: string, instead?: Turn) {
    follow();
    const scope = instead?.scope ?? draft.scope;
    const alone = instead?.alone ?? false;
    // What an earlier turn has left stays to be read; one that came to nothing is in the way.
    const replaced =
      instead !== undefined && instead.text === "" && instead.state !== "done" ? { instead: instead.key } : {};
    if (instead === undefined) runs.setDraft(conversation, { ...draft, text: "" });
    void runs.ask({ conversation, question, scope, length: draft.length, alone, ...replaced }, onBegun);
  }

  return (
    <section className="ask-main" aria-label={t.ask.heading}>
      {turns.length > 0 && <h1 className="visually-hidden">{t.ask.heading}</h1>}
      {kept.data !== undefined && turns.length > 0 && shared === null && <ConversationHead conversation={kept.data} />}
      <div className="ask-thread">
        {shared !== null && <SharedNote conversation={shared} />}
        {conversation !== null && kept.isPending && turns.length === 0 && <p className="centred quiet">{t.loading}</p>}
        {missing && turns.length === 0 && <p className="centred">{t.ask.conversations.missing}</p>}
        {kept.isError && !missing && <ProblemNote problem={kept.error} onRetry={() => void kept.refetch()} />}
        {turns.length === 0 && (conversation === null || kept.isSuccess) && <Welcome />}
        <GoneDocuments.Provider value={gone}>
          {turns.map((turn) => (
            <TurnView
              key={turn.key}
              conversation={conversation}
              turn={turn}
              last={turn === last}
              feedback={shared === null && turn.requestId !== null ? feedback.get(turn.requestId) : undefined}
              onOpen={onOpen}
              onAgain={mayAsk ? () => ask(turn.question, turn) : null}
              onAsk={mayAsk ? (question, alone) => askFrom(turn, question, alone) : null}
              onEverywhere={mayAsk ? () => ask(turn.question, { ...turn, scope: EVERYTHING }) : null}
            />
          ))}
        </GoneDocuments.Provider>
        {mayAsk && last?.state === "done" && last.ending?.answered === true && (
          <NextQuestions turns={turns} gone={gone} onAsk={askNext} />
        )}
      </div>
      {!missing && shared === null && (
        <Composer
          draft={draft}
          onDraft={(next) => runs.setDraft(conversation, next)}
          running={running}
          followUp={turns.length > 0}
          onAsk={(question) => ask(question)}
          onStop={() => running !== null && void runs.stop(running.key)}
          onLatest={running !== null && !following ? follow : null}
        />
      )}
      <Said turn={last} />
      {kept.data !== undefined && <PrintedPassages conversation={kept.data} turns={turns} />}
    </section>
  );
}

/** What happens, for those who do not see it: the stations and not every word. */
function Said({ turn }: { turn: Turn | undefined }) {
  // What the server had kept is no news.
  const news = turn !== undefined && turn.key !== turn.requestId;
  return (
    <p className="visually-hidden" role="status">
      {news ? wordsOf(turn) : ""}
    </p>
  );
}

function wordsOf(turn: Turn): string {
  const words = t.ask.turn;
  if (turn.stopping && isRunning(turn)) return t.ask.composer.stopping;
  if (turn.state === "waiting") return words.waitingFor(turn.waitingFor ?? words.waitingForModels);
  if (turn.state === "interrupted") return "";
  if (turn.state === "searching") return words.starting;
  if (isReading(turn)) return words.reading(turn.passages.length);
  if (turn.state === "writing") return words.writing;
  if (turn.state === "stopped") return turn.text === "" ? words.stoppedEmpty : words.stopped;
  if (turn.state === "failed") return "";
  if (isUnsure(turn)) return words.unsure;
  return turn.ending?.answered === false ? refusalTitle(turn.ending) : words.ready(turn.citations.length);
}
