/** The text of an answer with its footnotes: marks in it, a card at the mark, and the list below. */
import { useCallback, useId, useMemo, useState } from "react";
import type { Citation } from "../api/types";
import { t } from "../strings";
import { AnswerText } from "./AnswerText";
import { FootnoteCard, type Previewed } from "./FootnoteCard";
import { FootnoteList } from "./FootnoteList";
import { FootnoteMark, PendingMark } from "./FootnoteMark";
import type { OpenPassage } from "./places";
import { QuotedText } from "./QuotedText";
import { isBrief, pendingSegmentsOf, type Segment, segmentsOf, shownNumbers } from "./segments";
import { isRunning, type Turn } from "./turn";

export function AnswerBody({ turn, onOpen }: { turn: Turn; onOpen: OpenPassage }) {
  const { text, citations, ending } = turn;
  const card = useId();
  const running = isRunning(turn);
  const { written, quoted } = useMemo(() => {
    if (running) return { written: pendingSegmentsOf(text), quoted: [] };
    const from = ending?.quoted[0]?.start ?? Number.POSITIVE_INFINITY;
    return {
      written: segmentsOf(text, citations, ending?.uncited, { start: 0, end: from }),
      quoted: segmentsOf(text, citations, [], { start: from, end: Number.POSITIVE_INFINITY }),
    };
  }, [running, text, citations, ending]);
  const segments = useMemo(() => [...written, ...quoted], [written, quoted]);
  const instead = quoted.length > 0 && written.length > 0;
  const numbers = useMemo(() => shownNumbers(segments), [segments]);
  const [previewed, setPreviewed] = useState<Previewed | null>(null);
  const hide = useCallback(() => setPreviewed(null), []);
  const doubtful = citations.some((citation) => !citation.verified);

  function renderMark(mark: Extract<Segment, { kind: "mark" }>) {
    const citation = mark.citation === null ? undefined : citations[mark.citation];
    if (citation === undefined) return <PendingMark number={numbers.get(mark.number) ?? mark.number} />;
    return (
      <FootnoteMark
        citation={citation}
        number={numbers.get(mark.number) ?? mark.number}
        onPreview={(mark, delay) => setPreviewed({ citation, mark, delay })}
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
      {written.length > 0 && <AnswerText segments={written} doubted={instead} renderMark={renderMark} />}
      {quoted.length > 0 && <QuotedText segments={quoted} instead={instead} renderMark={renderMark} />}
      {!running && ((ending?.uncited.length ?? 0) > 0 || doubtful) && (
        <ul className="ask-legend small quiet">
          {(ending?.uncited.length ?? 0) > 0 && (
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
      {!running && citations.length > 0 && (
        <FootnoteList
          citations={citations}
          numbers={numbers}
          open={isBrief(segments)}
          onOpen={onOpen === null ? null : open}
        />
      )}
      {previewed !== null && <FootnoteCard id={card} previewed={previewed} onHide={hide} />}
    </>
  );
}
