/** Questions to go on with, below the last answer; a click asks one of its document, in the same conversation. */
import { useQueries } from "@tanstack/react-query";
import { request } from "../api/http";
import type { Overview } from "../api/types";
import { t } from "../strings";
import "./overviewCard.css";
import { type NextQuestion, nextQuestions } from "./nextQuestions";
import type { Turn } from "./turn";

const MOST_DOCUMENTS = 3;

interface NextQuestionsProps {
  turns: readonly Turn[];
  /** Documents that are deleted: nothing can be asked of them. */
  gone: ReadonlySet<string>;
  onAsk: (question: NextQuestion) => void;
}

export function NextQuestions({ turns, gone, onAsk }: NextQuestionsProps) {
  const citations = (turns.at(-1)?.citations ?? []).filter((one) => !gone.has(one.document_id));
  const documents = [...new Set(citations.map((one) => one.document_id))].slice(0, MOST_DOCUMENTS);
  const overviews = useQueries({
    queries: documents.map((id) => ({
      queryKey: ["documents", "questions", id],
      // Only what is known already: to look for questions costs tokens, and nobody has asked for that here.
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        request<Overview>(`v1/documents/${encodeURIComponent(id)}/overview?prepare=false`, { signal }),
      retry: false,
    })),
    combine: (results) => results.flatMap(({ data }) => (data === undefined ? [] : [data])),
  });
  const next = nextQuestions(
    citations,
    overviews,
    turns.map((turn) => turn.question),
  );
  if (next.length === 0) return null;
  return (
    <section className="ask-next" aria-labelledby="ask-next">
      <h2 id="ask-next" className="quiet small">
        {t.ask.nextQuestions}
      </h2>
      <ul className="overview-questions">
        {next.map((one) => (
          <li key={one.question}>
            <button type="button" onClick={() => onAsk(one)}>
              {one.question}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
