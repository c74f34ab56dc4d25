import { type ReactNode, useState } from "react";
import { Problem } from "../api/http";
import type { Boxes } from "../api/types";
import { t } from "../strings";
import { ProblemNote } from "../ui/ProblemNote";
import { PdfView } from "./PdfView";
import type { Span } from "./place";
import { useBoxes } from "./queries";
import { TextView } from "./TextView";
import { Unlock } from "./Unlock";
import { usePdf } from "./usePdf";
import "./viewer.css";

interface DocumentViewProps {
  id: string;
  version: number | null;
  isPdf: boolean;
  span: Span | null;
  page: number | null;
}

/** A version of a document at a passage: as its pages where it has real ones, else as the text that was read of it. */
export function DocumentView(props: DocumentViewProps) {
  const [asText, setAsText] = useState(false);
  if (!props.isPdf) return <TextView {...props} />;
  const choice = <ViewChoice asText={asText} onChoose={setAsText} />;
  if (!asText) return <Pages {...props}>{choice}</Pages>;
  return (
    <>
      <div className="pdf-tools">{choice}</div>
      <TextView {...props} />
    </>
  );
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

function Pages({ id, version, span, page, children }: DocumentViewProps & { children: ReactNode }) {
  const { opened, locked, problem } = usePdf(id, version);
  const boxes = useBoxes(id, version, span);
  if (problem instanceof Problem) return <ProblemNote problem={problem} />;
  if (problem !== null) {
    return (
      <>
        <p className="quiet viewer-note">{t.viewer.broken}</p>
        <TextView id={id} version={version} span={span} />
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
      {span !== null && <Found boxes={boxes.data} failed={boxes.isError} />}
      <PdfView opened={opened} boxes={boxes.data} page={page}>
        {children}
      </PdfView>
    </>
  );
}

/** Says where the passage is marked, or that it is not. */
function Found({ boxes, failed }: { boxes: Boxes | undefined; failed: boolean }) {
  const page = boxes?.data.find((marks) => marks.boxes.length > 0)?.page;
  const marked = page !== undefined;
  const known = boxes !== undefined || failed;
  const exact = marked && boxes?.exact === true;
  return (
    <p role="status" className={exact ? "visually-hidden" : "viewer-note quiet small"}>
      {known && (marked ? `${t.viewer.marked(page)}${exact ? "" : ` ${t.viewer.partly}`}` : t.viewer.unmarked)}
    </p>
  );
}
