/** One answer of a table: its text, how it stands, and its footnotes. */
import { useCallback, useId, useRef, useState } from "react";
import { flushSync } from "react-dom";
import type { Citation, TableAnswer, TableCell } from "../api/types";
import { FootnoteCard, type Previewed } from "../ask/FootnoteCard";
import { FootnoteMark } from "../ask/FootnoteMark";
import { standingOf } from "../ask/parts";
import type { OpenPassage } from "../ask/places";
import { beginningOf, cellText, footnotesOf, isQuoted, type Standing, standingOfCell } from "./cells";
import { words } from "./strings";

/** Characters that are shown at first: of an answer, and of the sentence below one in a few words. */
const LONGEST = 280;
const LONGEST_BELOW = 140;

const LOOKS: Record<Standing, { tone: string; sign: string }> = {
  confirmed: { tone: "badge good", sign: "✓ " },
  exact: { tone: "badge", sign: "❝ " },
  unconfirmed: { tone: "badge warn", sign: "⚠ " },
  unsure: { tone: "badge warn", sign: "? " },
  unanswered: { tone: "badge", sign: "– " },
  failed: { tone: "badge bad", sign: "✕ " },
  waiting: { tone: "badge", sign: "" },
  asking: { tone: "badge", sign: "" },
};

export function AnswerCell({ cell, onOpen }: { cell: TableCell; onOpen: OpenPassage }) {
  const standing = standingOfCell(cell);
  const { tone, sign } = LOOKS[standing];
  const box = useRef<HTMLDivElement>(null);

  /** The passage takes room from the table; the cell stays in sight. */
  function open(citation: Citation) {
    flushSync(() => onOpen?.(citation));
    box.current?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  return (
    <div ref={box} className="answer-cell">
      {cell.answer !== null && standing !== "unanswered" && (
        <Said answer={cell.answer} onOpen={onOpen === null ? null : open} />
      )}
      <span className={tone}>
        <span aria-hidden="true">{sign}</span>
        {words.standings[standing]}
      </span>
      {cell.error !== null && <p className="small">{cell.error}</p>}
    </div>
  );
}

type Open = ((citation: Citation) => void) | null;

function Said({ answer, onOpen }: { answer: TableAnswer; onOpen: Open }) {
  const [whole, setWhole] = useState(false);
  const { lead, rest } = cellText(answer);
  const beginning = beginningOf(rest, lead === "" ? LONGEST : LONGEST_BELOW);
  const marks = <Footnotes answer={answer} onOpen={onOpen} />;
  return (
    <>
      {lead !== "" && (
        <p dir="auto">
          <strong>{lead}</strong>
          {marks}
        </p>
      )}
      {rest !== "" && (
        <p dir="auto" className={lead === "" ? "said" : "said quiet small"}>
          {whole || beginning === null ? rest : beginning}
          {lead === "" && marks}
        </p>
      )}
      {beginning !== null && (
        <button type="button" className="plain small" aria-expanded={whole} onClick={() => setWhole(!whole)}>
          {whole ? words.part : words.whole}
        </button>
      )}
    </>
  );
}

function Footnotes({ answer, onOpen }: { answer: TableAnswer; onOpen: Open }) {
  const card = useId();
  const [previewed, setPreviewed] = useState<Previewed | null>(null);
  const hide = useCallback(() => setPreviewed(null), []);
  return (
    <>
      {footnotesOf(answer).map((citation, at) => {
        const standing = standingOf(citation, isQuoted(citation, answer));
        return (
          <FootnoteMark
            key={citation.index}
            citation={citation}
            standing={standing}
            number={at + 1}
            onPreview={(mark, delay) => setPreviewed({ citation, standing, mark, delay })}
            onLeave={(delay) => setPreviewed((one) => (one?.citation === citation ? { ...one, leaving: delay } : one))}
            onOpen={
              onOpen === null
                ? null
                : () => {
                    hide();
                    onOpen(citation);
                  }
            }
            describedBy={previewed?.citation === citation ? card : undefined}
          />
        );
      })}
      {previewed !== null && <FootnoteCard id={card} previewed={previewed} onHide={hide} />}
    </>
  );
}
