/** What a newcomer sees before the first question: what to do. */
import { useQuery } from "@tanstack/react-query";
import { useLocation } from "wouter";
import { request } from "../api/http";
import type { Document, Page } from "../api/types";
import { AddFiles } from "../documents/AddFiles";
import type { Gathered } from "../documents/entries";
import { gatherSample } from "../documents/sample";
import { NEWEST } from "../documents/UploadProvider";
import { useAdding } from "../documents/useAdding";
import { useSession } from "../session/session";
import { t } from "../strings";
import { OverviewCard } from "./OverviewCard";

const POLL_MS = 3000;
const MOST_CARDS = 2;

export function Welcome() {
  const words = t.ask.welcome;
  const { role } = useSession();
  const any = useQuery({
    queryKey: [...NEWEST, { limit: 1 }],
    queryFn: ({ signal }) => request<Page<Document>>("v1/documents", { query: { limit: 1 }, signal }),
  });
  const empty = any.data?.data.length === 0;
  const ready = useQuery({
    queryKey: [...NEWEST, { limit: MOST_CARDS, status: "indexed" }],
    queryFn: ({ signal }) =>
      request<Page<Document>>("v1/documents", { query: { limit: MOST_CARDS, status: "indexed" }, signal }),
    enabled: any.isSuccess && !empty,
    refetchInterval: (query) => (query.state.data?.data.length === 0 ? POLL_MS : false),
  });
  if (any.isPending) return null;
  if (empty) {
    return (
      <div className="ask-welcome">
        <h1>{words.emptyTitle}</h1>
        <p className="lead">{role === "reader" ? words.emptyReader : words.empty}</p>
        {role !== "reader" && <FirstFiles />}
        {role !== "reader" && (
          <p className="quiet small">
            {words.reads} {t.documents.formats}
          </p>
        )}
      </div>
    );
  }
  if (ready.data?.data.length === 0) {
    return (
      <div className="ask-welcome" role="status">
        <h1>{words.readingTitle}</h1>
        <p className="lead">{words.reading}</p>
        <a href="#/documents">{words.progress}</a>
      </div>
    );
  }
  return (
    <div className="ask-welcome">
      <h1>{words.title}</h1>
      <p className="lead">{words.how}</p>
      {(ready.data?.data ?? []).map((document) => (
        <OverviewCard key={document.id} document={document} />
      ))}
      <ul>
        {words.points.map((point) => (
          <li key={point}>{point}</li>
        ))}
      </ul>
    </div>
  );
}

/** The first files: how far they are is shown where documents are. */
function FirstFiles() {
  const { collections } = useSession();
  const add = useAdding();
  const [, navigate] = useLocation();
  if (collections !== null) {
    return (
      <a className="button ask-add" href="#/documents">
        {t.ask.welcome.add}
      </a>
    );
  }
  const words = t.ask.welcome;
  function added(gathered: Gathered) {
    if (add(gathered, null)) navigate("/documents");
  }
  return (
    <>
      <AddFiles
        into={null}
        choices={null}
        onTarget={() => {}}
        onFiles={added}
        onAddress={() => navigate("/documents")}
      />
      <p className="row ask-sample">
        <button type="button" onClick={() => void gatherSample().then(added)}>
          {words.sample}
        </button>
        <span className="quiet small">{words.sampleHint}</span>
      </p>
    </>
  );
}
