import { type RefObject, useEffect, useRef } from "react";
import { Problem } from "../api/http";
import { type Passage, placeIn, placeNow, sectionWords } from "../ask/places";
import { Since } from "../ask/Since";
import { t } from "../strings";
import { FileName } from "../ui/FileName";
import { ProblemNote } from "../ui/ProblemNote";
import { DocumentView } from "./DocumentView";
import { addressOf, type Place } from "./place";
import { Quote } from "./Quote";
import { isPdfFile, useDocument, useQuote, useVersions } from "./queries";

interface PassagePanelProps {
  passage: Passage;
  onClose: () => void;
}

/** A passage in its document, beside an answer. It fills the place it is put in. Escape closes it;
 * the focus goes back to where it was. */
export default function PassagePanel({ passage, onClose }: PassagePanelProps) {
  const panel = useRef<HTMLElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const place = placeIn(passage);
  const name = addressOf(place);
  const now = placeNow(passage);
  const quote = useQuote(place.document, place.version, place.span, passage.cited_text);
  useFocus(panel, heading, name);

  return (
    <aside
      ref={panel}
      className="passage-panel"
      aria-label={t.viewer.panel}
      onKeyDown={(event) => {
        if (event.key === "Escape") onClose();
      }}
    >
      <div className="passage-head">
        <h2 ref={heading} tabIndex={-1} dir="auto">
          <FileName name={passage.filename} />
        </h2>
        <button type="button" className="plain" onClick={onClose} aria-label={t.viewer.close} title={t.viewer.close}>
          <span aria-hidden="true">✕</span>
        </button>
      </div>
      {quote !== null && <Quote text={quote} pages={pagesOf(passage)} start={passage.start_char} marks={place.marks} />}
      <Since citation={passage} />
      <p className="passage-links small">
        <a href={name}>{t.viewer.whole}</a>
        {now !== null && <a href={addressOf(now)}>{t.viewer.placeNow}</a>}
      </p>
      <Cited key={name} place={place} />
    </aside>
  );
}

function Cited({ place }: { place: Place }) {
  const found = useDocument(place.document);
  const versions = useVersions(place.document);
  if (found.isPending || versions.isPending) return <p className="centred quiet">{t.viewer.loading}</p>;
  if (found.isError) {
    return (
      <>
        <ProblemNote problem={found.error} />
        {found.error instanceof Problem && found.error.status === 404 && (
          <p className="quiet viewer-note">{t.viewer.gone}</p>
        )}
      </>
    );
  }
  const version = versions.data?.data.find((one) => one.version === place.version);
  const mediaType = version?.media_type ?? found.data.media_type;
  const isPdf = isPdfFile(mediaType, found.data.filename);
  const { document, span, marks, page } = place;
  return (
    <DocumentView
      id={document}
      version={place.version}
      isPdf={isPdf}
      mediaType={mediaType}
      span={span}
      marks={marks}
      page={page}
    />
  );
}

/** Takes the focus to the heading whenever another passage is shown, and back to the last footnote in the end. */
function useFocus(panel: RefObject<HTMLElement | null>, heading: RefObject<HTMLElement | null>, name: string) {
  const before = useRef<HTMLElement | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another passage takes the focus too
  useEffect(() => {
    const { activeElement } = document;
    if (activeElement instanceof HTMLElement && !panel.current?.contains(activeElement)) before.current = activeElement;
    heading.current?.focus({ preventScroll: true });
  }, [panel, heading, name]);
  useEffect(
    () => () => {
      if (before.current?.isConnected) before.current.focus();
    },
    [],
  );
}

function pagesOf(passage: Passage): string | null {
  const { page_start: first, page_end: last, section = null, sheet = null, cell = null } = passage;
  if (sheet !== null) return t.ask.footnote.sheet(sheet, cell);
  if (first === null) return section === null ? null : sectionWords(section);
  return t.viewer.pageRange(first, last ?? first);
}
