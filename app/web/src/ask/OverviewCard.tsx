/** What a document is: its title, what it says of itself in its own words, and questions that it answers. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { request } from "../api/http";
import type { Document, Overview } from "../api/types";
import { t } from "../strings";
import { MarkedText } from "../viewer/MarkedText";
import "./overviewCard.css";
import { withNew } from "./shownQuestions";
import { useAskAbout } from "./useAskAbout";

const POLL_MS = 1000;
const LATER_MS = 20_000;
const MOST_HEADINGS = 5;

export function OverviewCard({ document }: { document: Document }) {
  const words = t.ask.overview;
  const ask = useAskAbout();
  const version = document.live_version;
  const overview = useQuery({
    queryKey: ["documents", "overview", document.id, version],
    queryFn: async ({ signal, client, queryKey }) => {
      const found = await request<Overview>(`v1/documents/${encodeURIComponent(document.id)}/overview`, { signal });
      const before = client.getQueryData<Overview>(queryKey)?.questions ?? [];
      return { ...found, questions: withNew(before, found.questions) };
    },
    enabled: version !== null,
    refetchInterval: ({ state }) => waiting(state.data),
  });
  const shown = overview.data;
  if (shown === undefined) return null;
  const opening = shown.summary.find(({ part }) => part === "opening");
  const headings = shown.summary.filter(({ part }) => part === "heading").slice(0, MOST_HEADINGS);
  return (
    <article className="card overview-card" aria-label={shown.title}>
      <div className="overview-head">
        <h3>
          <Link href={`/documents/${document.id}`}>{shown.title}</Link>
        </h3>
        <span className="quiet small">{words.kind(shown.kind, shown.pages)}</span>
      </div>
      {opening !== undefined && (
        <blockquote>
          <MarkedText text={opening.text} start={opening.start_char} />
        </blockquote>
      )}
      {headings.length > 0 && (
        <p className="overview-parts quiet small">
          {headings.map(({ text }) => text.replace(/^#+\s*/, "").trim()).join(" · ")}
        </p>
      )}
      {shown.state === "preparing" && (
        <p className="overview-parts quiet small" role="status">
          {words.preparing}
        </p>
      )}
      {shown.questions.length > 0 && (
        <ul className="overview-questions" aria-label={words.questions}>
          {shown.questions.map(({ question, confirmed }) => (
            <li key={question}>
              <button type="button" onClick={() => ask(question, { id: document.id, name: document.filename })}>
                {question}
                {!confirmed && (
                  <span className="badge" title={words.notConfirmedTitle}>
                    {words.notConfirmed}
                  </span>
                )}
              </button>
            </li>
          ))}
        </ul>
      )}
    </article>
  );
}

/** When to ask again for what is still being found. */
function waiting(shown: Overview | undefined): number | false {
  if (shown?.state === "preparing") return POLL_MS;
  return shown?.state === "unavailable" ? LATER_MS : false;
}
