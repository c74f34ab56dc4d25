/** The passages that are read for an answer, a card each: shown while nothing is answered, then folded into a line. */
import { useLayoutEffect, useRef, useState } from "react";
import type { SourcePassage } from "../api/types";
import { t } from "../strings";
import { PassageLink } from "./PassageLink";
import type { OpenPassage, Passage } from "./places";
import { isReading, type Turn } from "./turn";

export function SourceCards({ turn, onOpen }: { turn: Turn; onOpen: OpenPassage }) {
  const { passages } = turn;
  const reading = isReading(turn);
  // Null until the reader has opened or closed them, or opened a card.
  const [chosen, setChosen] = useState<boolean | null>(null);
  const open = chosen ?? reading;
  const summary = useRef<HTMLElement>(null);
  const list = useRef<HTMLOListElement>(null);

  useLayoutEffect(() => {
    // What is folded away cannot keep the focus.
    if (!open && list.current?.contains(document.activeElement)) summary.current?.focus({ preventScroll: true });
  }, [open]);

  function look(passage: Passage) {
    setChosen(true); // the focus comes back to the card
    onOpen?.(passage);
  }

  return (
    <details
      className="ask-sources"
      open={open}
      onToggle={({ currentTarget }) => {
        if (currentTarget.open !== open) setChosen(currentTarget.open);
      }}
    >
      <summary ref={summary} className="quiet">
        {reading && <span className="ask-pulse" aria-hidden="true" />} {stateOf(turn)}
      </summary>
      <ol ref={list}>
        {passages.map((one) => (
          <li key={one.chunk_id}>
            <PassageLink className="ask-source" passage={passageOf(one)} onOpen={onOpen === null ? null : look}>
              <span className="ask-source-name">{one.name}</span>
              <span className="ask-source-place quiet small">{one.place}</span>
              <span className="ask-source-excerpt small" dir="auto">
                {one.excerpt}
              </span>
            </PassageLink>
          </li>
        ))}
      </ol>
    </details>
  );
}

function stateOf(turn: Turn): string {
  const words = t.ask.turn;
  const number = turn.passages.length;
  if (isReading(turn)) return words.reading(number);
  const unread = turn.text === "" && (turn.state === "stopped" || turn.state === "failed");
  return unread ? words.found(number) : words.read(number);
}

/** Only the server has all words of the passage. */
function passageOf({ name, ...source }: SourcePassage): Passage {
  return { ...source, filename: name, cited_text: null };
}
