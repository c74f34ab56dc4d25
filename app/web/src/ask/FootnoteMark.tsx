/** The mark of a footnote in an answer: a link to its passage. */
import type { MouseEvent } from "react";
import type { Citation } from "../api/types";
import { t } from "../strings";
import type { Standing } from "./parts";
import { pageWords, passageHref } from "./places";

/** Pointing shows the passage after a moment, so that crossing a mark shows nothing. */
const POINT_MS = 120;
const LEAVE_MS = 200;

interface FootnoteMarkProps {
  citation: Citation;
  standing: Standing;
  /** What it is shown as. */
  number: number;
  onPreview: (mark: HTMLElement, delay: number) => void;
  onLeave: (delay: number) => void;
  onOpen: (() => void) | null;
  describedBy: string | undefined;
}

export function FootnoteMark(props: FootnoteMarkProps) {
  const { citation, number, onPreview, onLeave, onOpen, describedBy } = props;
  const { standing } = props;
  const gone = standing === "gone" || standing === "absent";
  const doubtful = standing === "unconfirmed" || standing === "altered" || standing === "unsettled";
  const words = t.ask.footnote;
  const doubt = doubtOf(standing);
  const label = words.label(number, citation.filename, pageWords(citation));
  return (
    <a
      className={gone ? "ask-mark gone" : doubtful ? "ask-mark doubtful" : "ask-mark"}
      href={passageHref(citation)}
      aria-label={doubt === null ? label : `${label}, ${doubt}`}
      aria-describedby={describedBy}
      onPointerEnter={(event) => {
        if (event.pointerType === "mouse") onPreview(event.currentTarget, POINT_MS);
      }}
      onPointerLeave={() => onLeave(LEAVE_MS)}
      onFocus={(event) => {
        if (event.currentTarget.matches(":focus-visible")) onPreview(event.currentTarget, 0);
      }}
      onBlur={() => onLeave(0)}
      onClick={(event) => {
        if (onOpen === null || isElsewhere(event)) return;
        event.preventDefault();
        onOpen();
      }}
    >
      {number}
      {doubtful && <span aria-hidden="true">?</span>}
    </a>
  );
}

/** What is to be held against a footnote, for those who do not see its look. */
function doubtOf(standing: Standing): string | null {
  const words = t.ask.footnote;
  if (standing === "gone") return words.goneLabel;
  if (standing === "unconfirmed") return words.unconfirmedLabel;
  return standing === "confirmed" || standing === "exact" ? null : words.sinceLabel[standing];
}

/** A mark whose footnote has not come yet. */
export function PendingMark({ number }: { number: number }) {
  return (
    <span className="ask-mark pending" title={t.ask.footnote.pending(number)}>
      {number}
    </span>
  );
}

/** Whether a click asks for another tab or window. */
export function isElsewhere(event: MouseEvent): boolean {
  return event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0;
}
