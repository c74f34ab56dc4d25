import { useEffect, useId } from "react";
import { address, Problem } from "../api/http";
import type { Document, DocumentVersion } from "../api/types";
import { t } from "../strings";
import { FileName } from "../ui/FileName";
import { ProblemNote } from "../ui/ProblemNote";
import { DocumentView } from "./DocumentView";
import { FindBar } from "./FindBar";
import { addressOf, type Place, placeOf } from "./place";
import { Quote } from "./Quote";
import { isPdfFile, useDocument, useQuote, useVersions } from "./queries";
import { useFind } from "./useFind";

/** No passage: the document from its beginning. */
const NOWHERE = { span: null, marks: [], page: null };

/** A document, at a passage where the address names one. */
export default function ViewerScreen({ document: given }: { document: string }) {
  const place = placeOf(given);
  const found = useDocument(place.document);
  const versions = useVersions(place.document);
  const name = found.data?.filename;
  useTitle(name);

  if (found.isPending || versions.isPending) return <p className="centred quiet">{t.viewer.loading}</p>;
  if (found.isError || versions.isError) {
    const problem = found.error ?? versions.error;
    return (
      <div className="screen">
        <BackLink />
        <ProblemNote problem={problem} onRetry={() => void Promise.all([found.refetch(), versions.refetch()])} />
        {problem instanceof Problem && problem.status === 404 && <p className="quiet viewer-note">{t.viewer.gone}</p>}
      </div>
    );
  }
  return <Viewer place={place} document={found.data} versions={versions.data.data} />;
}

function Viewer({ place, document, versions }: { place: Place; document: Document; versions: DocumentVersion[] }) {
  // A citation's own version, else what is searched now, else the only one there is: one that is being read.
  const number = place.version ?? document.live_version ?? document.version;
  const version = versions.find((one) => one.version === number);
  const mediaType = version?.media_type ?? document.media_type;
  const isPdf = isPdfFile(mediaType, document.filename);
  const unread = version?.indexed_at === null;
  const quote = useQuote(place.document, number, place.span, null);
  const find = useFind(place.document, number);
  return (
    <div className="viewer">
      <header className="viewer-head">
        <div className="row">
          {/* Who follows a footnote wants to read on where it was. */}
          {place.span !== null && window.history.length > 1 && (
            <button type="button" className="plain small" onClick={() => window.history.back()}>
              <span aria-hidden="true">← </span>
              {t.viewer.backToWhere}
            </button>
          )}
          <BackLink />
        </div>
        <div className="row viewer-facts">
          <h1 dir="auto">
            <FileName name={version?.filename ?? document.filename} />
          </h1>
          {version !== undefined && (version.counts.pages ?? 0) > 0 && (
            <span className="quiet small">{t.viewer.pages(version.counts.pages ?? 0)}</span>
          )}
          <VersionChoice place={place} number={number} versions={versions} />
          {!unread && <FindBar find={find} />}
          <a className="button" href={address(`v1/documents/${document.id}/file`, { version: number })} download>
            {t.viewer.download}
          </a>
        </div>
        {document.live_version !== null && number < document.live_version && (
          <p className="viewer-note">
            {t.viewer.older(document.live_version)}{" "}
            <a href={addressOf({ ...place, version: null, ...NOWHERE })}>{t.viewer.current}</a>
          </p>
        )}
        {quote !== null && (
          <Quote
            text={quote}
            pages={place.page === null ? null : t.viewer.page(place.page)}
            start={place.span?.start ?? 0}
            marks={place.marks}
          />
        )}
      </header>
      {unread && (
        <p className="viewer-note" role="status">
          {document.error?.detail ?? t.viewer.noText}
        </p>
      )}
      {(isPdf || !unread) && (
        <DocumentView
          key={`${place.document} ${number} ${place.span?.start} ${place.span?.end}`}
          id={place.document}
          version={number}
          isPdf={isPdf}
          mediaType={mediaType}
          span={place.span}
          marks={place.marks}
          page={place.page}
          find={find}
        />
      )}
    </div>
  );
}

function BackLink() {
  return (
    <a className="viewer-back small" href="#/documents">
      <span aria-hidden="true">← </span>
      {t.viewer.back}
    </a>
  );
}

/** Which version is shown; a choice only where there are several. */
function VersionChoice({ place, number, versions }: { place: Place; number: number; versions: DocumentVersion[] }) {
  const id = useId();
  if (versions.length < 2) return <span className="quiet small">{t.viewer.version(number)}</span>;
  return (
    <span className="row">
      <label htmlFor={id}>{t.viewer.versionLabel}</label>
      <select
        id={id}
        value={number}
        onChange={(event) => {
          // The passage was cited from another version: its place in this one means nothing.
          const version = Number(event.target.value);
          window.location.hash = addressOf({ ...place, version, ...NOWHERE });
        }}
      >
        {versions.map((one) => (
          <option key={one.version} value={one.version} disabled={one.indexed_at === null}>
            {one.indexed_at === null
              ? t.viewer.notReady(one.version)
              : t.viewer.versionOf(one.version, dateOf(one.created_at), one.live)}
          </option>
        ))}
      </select>
    </span>
  );
}

function dateOf(moment: string): string {
  return new Intl.DateTimeFormat(undefined, { dateStyle: "medium" }).format(new Date(moment));
}

function useTitle(name: string | undefined) {
  useEffect(() => {
    if (name === undefined) return;
    const before = document.title;
    document.title = `${name} – ${t.product}`;
    return () => {
      document.title = before;
    };
  }, [name]);
}
