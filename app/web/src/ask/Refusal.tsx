/** Why there is no answer, in plain words, what else to try, and what was found nearest. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { request } from "../api/http";
import type { SearchResponse } from "../api/types";
import { t } from "../strings";
import { ProblemNote } from "../ui/ProblemNote";
import { pageWords, passageHref } from "./places";
import { isEverything, scopeBody } from "./scope";
import type { Ending, Turn } from "./turn";

const NEAREST = 3;

export function Refusal({ turn, onEverywhere }: { turn: Turn; onEverywhere: (() => void) | null }) {
  const words = t.ask.refusal;
  const scoped = !isEverything(turn.scope);
  return (
    <div className="ask-refusal">
      <p className="ask-refusal-title">{words.title}</p>
      {turn.text !== "" && <p className="quiet ask-break">“{turn.text}”</p>}
      <p>{why(turn.ending)}</p>
      {scoped ? (
        <p>
          {words.scoped}{" "}
          {onEverywhere !== null && (
            <button type="button" onClick={onEverywhere}>
              {words.everywhere}
            </button>
          )}
        </p>
      ) : (
        <p className="quiet">{words.hint}</p>
      )}
      <Nearest turn={turn} />
    </div>
  );
}

function why(ending: Ending | null): string {
  const words = t.ask.refusal;
  switch (ending?.reason) {
    case "no_evidence":
      return words.noEvidence;
    case "not_in_sources":
      return ending.stage === "reader" ? words.reader : words.notInSources;
    case "not_verified":
      return words.notVerified;
    default:
      return words.unknown;
  }
}

/** Searched for only when somebody wants to see it: the answer names what was found, but does not quote it. */
function Nearest({ turn }: { turn: Turn }) {
  const words = t.ask.refusal;
  const [open, setOpen] = useState(false);
  const query = turn.ending?.standalone ?? turn.question;
  const found = useQuery({
    queryKey: ["search", query, turn.scope],
    queryFn: () =>
      request<SearchResponse>("v1/search", {
        method: "POST",
        body: { query, top_k: NEAREST, ...scopeBody(turn.scope) },
      }),
    enabled: open,
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <details className="ask-nearest" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{words.nearest}</summary>
      <p className="quiet small">{words.nearestCost}</p>
      {found.isPending && <p className="quiet">{t.loading}</p>}
      {found.isError && <ProblemNote problem={found.error} onRetry={() => void found.refetch()} />}
      {found.data?.data.length === 0 && <p>{words.nearestNone}</p>}
      <ol>
        {found.data?.data.map((hit) => (
          <li key={hit.chunk_id}>
            <a href={passageHref(hit)}>
              {hit.filename}
              {pageWords(hit) !== "" && `, ${pageWords(hit)}`}
            </a>
            <blockquote>{hit.text}</blockquote>
          </li>
        ))}
      </ol>
    </details>
  );
}
