/** Why there is no answer, or none that is sure, in plain words, what else to try, and what was found nearest. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { request } from "../api/http";
import type { Hit, SearchResponse } from "../api/types";
import { t } from "../strings";
import { ProblemNote } from "../ui/ProblemNote";
import { parted } from "../viewer/codePoints";
import { MarkedQuote } from "../viewer/MarkedQuote";
import { AnswerBody } from "./AnswerBody";
import { isElsewhere } from "./FootnoteMark";
import type { OpenPassage } from "./places";
import { pageWords, passageHref, placeIn } from "./places";
import { isEverything, scopeBody } from "./scope";
import { type Ending, languageFound, type Turn } from "./turn";

const NEAREST = 3;

interface RefusalProps {
  turn: Turn;
  onOpen: OpenPassage;
  onEverywhere: (() => void) | null;
}

/** Where passages were read, the sentence that comes nearest stands first: it may be right. */
export function Refusal({ turn, onOpen, onEverywhere }: RefusalProps) {
  const language = languageFound(turn);
  const nearest = useNearest(turn);
  const [best] = nearest.open && turn.ending?.reason !== "no_evidence" ? nearest.hits : [];
  return (
    <div className="ask-refusal">
      <p className="ask-refusal-title">{best === undefined ? refusalTitle(turn.ending) : t.ask.refusal.couldNot}</p>
      {best !== undefined && <Best hit={best} onOpen={onOpen} />}
      <p>{why(turn.ending)}</p>
      {language !== null && <p>{t.ask.refusal.otherLanguage(language)}</p>}
      <WhatElse turn={turn} onEverywhere={onEverywhere} />
      <Nearest nearest={nearest} onOpen={onOpen} />
    </div>
  );
}

/** Of a passage without a marked sentence so much is shown, in code points. */
const BEGINNING = 300;

/** The sentence of a passage that comes nearest to the question. */
function Best({ hit, onOpen }: { hit: Hit; onOpen: OpenPassage }) {
  const [mark] = placeIn(hit).marks;
  const start = mark === undefined ? 0 : mark.start - hit.start_char;
  const [, text, more] = parted(hit.text, start, mark === undefined ? BEGINNING : mark.end - hit.start_char);
  return (
    <figure className="ask-quote ask-best">
      <blockquote dir="auto">
        {text.trim()}
        {mark === undefined && more !== "" && "…"}
      </blockquote>
      <figcaption className="small">
        <HitLink hit={hit} onOpen={onOpen} />
      </figcaption>
    </figure>
  );
}

function HitLink({ hit, onOpen }: { hit: Hit; onOpen: OpenPassage }) {
  return (
    <a
      href={passageHref(hit)}
      onClick={(event) => {
        if (onOpen === null || isElsewhere(event)) return;
        event.preventDefault();
        onOpen({ ...hit, cited_text: hit.text });
      }}
    >
      {hit.filename}
      {pageWords(hit) !== "" && `, ${pageWords(hit)}`}
    </a>
  );
}

/** The passages that may answer: the server's sentence about them, and the quotes. */
export function Unsure({ turn, onOpen, onEverywhere }: RefusalProps) {
  return (
    <div className="ask-unsure">
      <AnswerBody turn={turn} onOpen={onOpen} />
      <WhatElse turn={turn} onEverywhere={onEverywhere} />
    </div>
  );
}

function WhatElse({ turn, onEverywhere }: Omit<RefusalProps, "onOpen">) {
  const words = t.ask.refusal;
  if (isEverything(turn.scope)) return <p className="quiet">{words.hint}</p>;
  return (
    <p>
      {words.scoped}{" "}
      {onEverywhere !== null && (
        <button type="button" onClick={onEverywhere}>
          {words.everywhere}
        </button>
      )}
    </p>
  );
}

/** Where passages were read somebody may have missed what they say: then nothing is said of the documents. */
export function refusalTitle(ending: Ending | null): string {
  return ending?.reason === "no_evidence" ? t.ask.refusal.title : t.ask.refusal.titleRead;
}

function why(ending: Ending | null): string {
  const words = t.ask.refusal;
  if (ending?.reason === "not_in_sources" && ending.abstention?.stage === "reader") return words.reader;
  return words.why[ending?.reason as keyof typeof words.why] ?? words.unknown;
}

/** What was found nearest. The answer names it, but does not quote it, so it is searched for again: at once where
 * passages were just read in vain, when the server still knows the question and charges nothing; else when asked to. */
function useNearest(turn: Turn) {
  const isNews = turn.key !== turn.requestId;
  const [open, setOpen] = useState(isNews && turn.ending?.reason !== "no_evidence");
  const query = turn.ending?.standalone_question ?? turn.question;
  const found = useQuery({
    queryKey: ["search", query, turn.scope],
    queryFn: () =>
      request<SearchResponse>("v1/search", {
        method: "POST",
        body: { query, top_k: NEAREST, highlights: true, ...scopeBody(turn.scope) },
      }),
    enabled: open,
    staleTime: Number.POSITIVE_INFINITY,
  });
  return { open, setOpen, found, hits: found.data?.data ?? [] };
}

function Nearest({ nearest, onOpen }: { nearest: ReturnType<typeof useNearest>; onOpen: OpenPassage }) {
  const words = t.ask.refusal;
  const { open, setOpen, found, hits } = nearest;
  const spent = found.data?.usage.embedding_tokens ?? 0;
  return (
    <details className="ask-nearest" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{words.nearest}</summary>
      {spent > 0 && <p className="quiet small">{words.nearestCost(spent)}</p>}
      {found.isPending && <p className="quiet">{t.loading}</p>}
      {found.isError && <ProblemNote problem={found.error} onRetry={() => void found.refetch()} />}
      {found.isSuccess && hits.length === 0 && <p>{words.nearestNone}</p>}
      {hits.some((hit) => hit.highlights.length > 0) && <p className="quiet small">{words.nearestMarked}</p>}
      <ol>
        {hits.map((hit) => (
          <li key={hit.chunk_id}>
            <HitLink hit={hit} onOpen={onOpen} />
            <MarkedQuote text={hit.text} start={hit.start_char} marks={placeIn(hit).marks} />
          </li>
        ))}
      </ol>
    </details>
  );
}
