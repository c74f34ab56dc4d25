/** The passages of a whole conversation, for its printed form: the page itself shows each beside its answer. */
import { useEffect, useState } from "react";
import { flushSync } from "react-dom";
import type { Conversation } from "../api/types";
import { t } from "../strings";
import { exactIn, type Standing, standingOf } from "./parts";
import { pageWords } from "./places";
import { Since } from "./Since";
import { segmentsOf, shownNumbers } from "./segments";
import { partsIn, type Turn } from "./turn";
import "./print.css";

interface PrintedPassagesProps {
  conversation: Conversation;
  turns: readonly Turn[];
}

/** Made when the browser is about to print, by whatever way. */
export function PrintedPassages({ conversation, turns }: PrintedPassagesProps) {
  const [printing, setPrinting] = useState(false);
  useEffect(() => {
    const before = () => flushSync(() => setPrinting(true));
    const after = () => setPrinting(false);
    window.addEventListener("beforeprint", before);
    window.addEventListener("afterprint", after);
    return () => {
      window.removeEventListener("beforeprint", before);
      window.removeEventListener("afterprint", after);
    };
  }, []);
  if (!printing) return null;
  const cited = turns.filter(({ citations }) => citations.length > 0);
  return (
    <div className="print-only">
      <p className="print-title">{conversation.title}</p>
      {cited.length > 0 && <h2>{t.ask.conversations.passages}</h2>}
      {cited.map((turn) => (
        <section key={turn.key}>
          <h3>{turn.question}</h3>
          <Passages turn={turn} />
        </section>
      ))}
    </div>
  );
}

/** Each mark's passage, numbered as in the answer above. */
function Passages({ turn }: { turn: Turn }) {
  const { text, citations } = turn;
  const words = t.ask.footnote;
  const exact = exactIn(partsIn(turn));
  const numbers = shownNumbers(segmentsOf(text, citations));
  const passages = new Map<string, { number: number; place: number }>();
  citations.forEach((citation, place) => {
    const { document_id, version, start_char, end_char, index } = citation;
    const number = numbers.get(index);
    const name = [number, document_id, version, start_char, end_char].join(" ");
    if (number !== undefined && !passages.has(name)) passages.set(name, { number, place });
  });
  return [...passages].map(([name, { number, place }]) => {
    const citation = citations[place];
    if (citation === undefined) return null;
    const facts = [citation.filename, pageWords(citation)].filter((fact) => fact !== "").join(", ");
    const standing = standingOf(citation, exact.has(place));
    const doubt = standing === "unconfirmed" ? words.unconfirmedLabel : saidSince(standing);
    return (
      <figure key={name} className="print-passage">
        <figcaption>
          [{number}] {facts}
          {doubt !== null && ` (${doubt})`}
        </figcaption>
        <blockquote dir="auto">{citation.cited_text}</blockquote>
        <Since citation={citation} />
      </figure>
    );
  });
}

/** What became of a passage; a deleted document is no doubt of the printed words. */
function saidSince(standing: Standing): string | null {
  if (standing !== "altered" && standing !== "absent" && standing !== "unsettled") return null;
  return t.ask.footnote.sinceLabel[standing];
}
