/** The text of an answer with its footnotes: its lead, what is written and quoted, a card at each mark, and the list of
 * the passages that are not quoted in it. */
import { useCallback, useId, useMemo, useState } from "react";
import type { Citation } from "../api/types";
import { t } from "../strings";
import { AnswerText } from "./AnswerText";
import { FootnoteCard, type Previewed } from "./FootnoteCard";
import { FootnoteList } from "./FootnoteList";
import { FootnoteMark, PendingMark } from "./FootnoteMark";
import { useGone } from "./gone";
import { exactIn, hasUncited, type Parts, partsOf, standingOf, withoutEmptyQuotes } from "./parts";
import type { OpenPassage } from "./places";
import { Lead, Quotations } from "./Quotations";
import { pendingSegmentsOf, type Segment, segmentsOf, shownNumbers } from "./segments";
import { isRunning, isUnsure, partsIn, type Turn } from "./turn";

export function AnswerBody({ turn, onOpen }: { turn: Turn; onOpen: OpenPassage }) {
  const { text, citations } = turn;
  const card = useId();
  const gone = useGone();
  const running = isRunning(turn);
  const parts = useMemo(() => partsIn(turn), [turn]);
  const { lead, written, quotes } = useMemo<Parts>(
    () =>
      running
        ? { lead: [], written: withoutEmptyQuotes(pendingSegmentsOf(text)), quotes: [] }
        : partsOf(text, citations, parts),
    [running, text, citations, parts],
  );
  const exact = useMemo(() => exactIn(parts), [parts]);
  // Of the whole text in its order, as in its copy, however its parts are shown.
  const numbers = useMemo(
    () => shownNumbers(running ? pendingSegmentsOf(text) : segmentsOf(text, citations)),
    [running, text, citations],
  );
  const others = useMemo(() => citations.filter((_, at) => !exact.has(at)), [citations, exact]);
  const behind = written.length > 0 && quotes.length > 0 && !isUnsure(turn);
  const instead = behind && !others.some((citation) => citation.verified);
  const [previewed, setPreviewed] = useState<Previewed | null>(null);
  const hide = useCallback(() => setPreviewed(null), []);
  const doubtful = others.some((citation) => standingOf(citation, false) === "unconfirmed");

  function renderMark(mark: Extract<Segment, { kind: "mark" }>) {
    const citation = mark.citation === null ? undefined : citations[mark.citation];
    if (mark.citation === null || citation === undefined)
      return <PendingMark number={numbers.get(mark.number) ?? mark.number} />;
    const standing = standingOf(citation, exact.has(mark.citation), gone.has(citation.document_id));
    return (
      <FootnoteMark
        citation={citation}
        standing={standing}
        number={numbers.get(mark.number) ?? mark.number}
        onPreview={(mark, delay) => setPreviewed({ citation, standing, mark, delay })}
        onLeave={(delay) => setPreviewed((one) => (one?.citation === citation ? { ...one, leaving: delay } : one))}
        onOpen={onOpen === null ? null : () => open(citation)}
        describedBy={previewed?.citation === citation ? card : undefined}
      />
    );
  }

  function open(citation: Citation) {
    hide();
    onOpen?.(citation);
  }

  return (
    <>
      {!running && lead.length + written.length + quotes.length === 0 && <p>{t.ask.refusal.titleRead}</p>}
      {lead.length > 0 && <Lead segments={lead} renderMark={renderMark} />}
      {written.length > 0 && <AnswerText segments={written} doubted={instead} renderMark={renderMark} />}
      {quotes.length > 0 && (
        <Quotations
          quotes={quotes}
          citations={citations}
          {...(behind ? { caption: instead ? t.ask.turn.quotedInstead : t.ask.turn.quoted } : {})}
          renderMark={renderMark}
          onOpen={onOpen === null ? null : open}
        />
      )}
      {!running && (hasUncited(parts) || doubtful) && (
        <ul className="ask-legend small quiet">
          {hasUncited(parts) && (
            <li>
              <span className="ask-uncited">{t.ask.turn.uncited}</span>
            </li>
          )}
          {doubtful && (
            <li>
              <span className="ask-mark doubtful" aria-hidden="true">
                ?
              </span>{" "}
              {t.ask.turn.unconfirmed}
            </li>
          )}
        </ul>
      )}
      {!running && others.length > 0 && (
        <FootnoteList citations={others} numbers={numbers} onOpen={onOpen === null ? null : open} />
      )}
      {previewed !== null && <FootnoteCard id={card} previewed={previewed} onHide={hide} />}
    </>
  );
}
