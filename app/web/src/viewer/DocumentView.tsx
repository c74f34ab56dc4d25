import { type ReactNode, useState } from "react";
import { Problem } from "../api/http";
import { t } from "../strings";
import { ProblemNote } from "../ui/ProblemNote";
import { PdfView } from "./PdfView";
import type { Span } from "./place";
import { TextView } from "./TextView";
import { Unlock } from "./Unlock";
import type { Find } from "./useFind";
import { useFoundPlace } from "./useFoundPlace";
import { type FoundPassage, usePassage } from "./usePassage";
import { usePdf } from "./usePdf";
import "./viewer.css";

/** Of a passage's words: where fewer are marked its reader is told. In all PDFs that were measured, one passage in eight
 * lacks a footer's or a figure's words, and one in a hundred lacks more than these. */
const MOSTLY = 0.9;

interface DocumentViewProps {
  id: string;
  version: number | null;
  isPdf: boolean;
  mediaType: string | null;
  span: Span | null;
  /** Sentences of the span that matter most; all of it does where there are none. */
  marks: readonly Span[];
  page: number | null;
  /** What is searched for in it; its places come before the passage. */
  find?: Find;
}

/** A version of a document at a passage: as its pages where it has real ones, else as the text that was read of it. */
export function DocumentView(props: DocumentViewProps) {
  const [asText, setAsText] = useState(false);
  if (!props.isPdf) return <TextView {...props} withStructure={isWritten(props.mediaType)} />;
  const choice = <ViewChoice asText={asText} onChoose={setAsText} />;
  if (!asText) return <Pages {...props}>{choice}</Pages>;
  return (
    <>
      <div className="pdf-tools">{choice}</div>
      <TextView {...props} />
    </>
  );
}

/** Whether a format's own marks of headings and lists are not in its canonical text: those of Word and web pages are not,
 * those of Markdown and plain text are. */
function isWritten(mediaType: string | null): boolean {
  return mediaType !== null && (!mediaType.startsWith("text/") || mediaType === "text/html");
}

function ViewChoice({ asText, onChoose }: { asText: boolean; onChoose: (asText: boolean) => void }) {
  return (
    <fieldset className="view-choice">
      <legend className="visually-hidden">{t.viewer.view}</legend>
      <button type="button" aria-pressed={!asText} onClick={() => onChoose(false)}>
        {t.viewer.asPages}
      </button>
      <button type="button" aria-pressed={asText} onClick={() => onChoose(true)}>
        {t.viewer.asText}
      </button>
    </fieldset>
  );
}

function Pages({ id, version, span, marks, page, find, children }: DocumentViewProps & { children: ReactNode }) {
  const { opened, locked, problem } = usePdf(id, version);
  const found = usePassage(id, version, span, marks);
  const place = useFoundPlace(id, version, find);
  if (problem instanceof Problem) return <ProblemNote problem={problem} />;
  if (problem !== null) {
    return (
      <>
        <p className="quiet viewer-note">{t.viewer.broken}</p>
        <TextView id={id} version={version} span={span} marks={marks} {...(find !== undefined ? { find } : {})} />
      </>
    );
  }
  if (locked !== null || opened === null) {
    return (
      <>
        <div className="pdf-tools">{children}</div>
        {locked === null ? <p className="centred quiet">{t.viewer.loading}</p> : <Unlock locked={locked} />}
      </>
    );
  }
  return (
    <>
      {place === null && span !== null && <Found found={found} />}
      {place?.unmarked === true && (
        <p className="viewer-note quiet small" role="status">
          {t.viewer.find.unmarked}
        </p>
      )}
      <PdfView
        opened={opened}
        marks={place === null ? found.marks : place.marks}
        around={place === null ? found.around : place.around}
        page={place === null ? page : place.page}
      >
        {children}
      </PdfView>
    </>
  );
}

/** Says where the passage is marked, or that it is not; where a good part of it has no mark, also to those who see. */
function Found({ found: { marks, coverage, known } }: { found: FoundPassage }) {
  const page = marks?.find((one) => one.boxes.length > 0)?.page;
  const marked = page !== undefined;
  const mostly = marked && coverage >= MOSTLY;
  return (
    <p role="status" className={mostly ? "visually-hidden" : "viewer-note quiet small"}>
      {known && (marked ? `${t.viewer.marked(page)}${mostly ? "" : ` ${t.viewer.partly}`}` : t.viewer.unmarked)}
    </p>
  );
}
