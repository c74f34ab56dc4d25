/** What is known of a footnote, in words: confirmed, or that its words stand in the document, or neither. */
import type { Citation } from "../api/types";
import { t } from "../strings";
import type { Standing } from "./parts";
import { pageWords } from "./places";
import { Since } from "./Since";

export function Confirmation({ citation, standing }: { citation: Citation; standing: Standing }) {
  const words = t.ask.footnote;
  const judged = standing === "confirmed" || standing === "unconfirmed";
  return (
    <>
      <p className="small ask-confirmation">
        <Badge citation={citation} standing={standing} />
        {standing === "exact" && <span className="ask-why quiet">{words.wordForWordWhy}</span>}
        {standing === "gone" && <span className="ask-why">{words.goneWhy}</span>}
        {standing === "unconfirmed" && <span className="ask-why">{words.unconfirmedWhy}</span>}
        {judged && citation.origin === "attributed" && <span className="ask-why quiet">{words.attributed}</span>}
      </p>
      <Since citation={citation} />
    </>
  );
}

export function Badge({ citation, standing }: { citation: Citation; standing: Standing }) {
  const words = t.ask.footnote;
  switch (standing) {
    case "confirmed":
      return (
        <span className="badge good">
          <span aria-hidden="true">✓</span> {words.confirmed}
        </span>
      );
    case "exact":
      return <span className="badge">{words.wordForWord(citation.filename, pageWords(citation))}</span>;
    case "gone":
      return (
        <span className="badge warn">
          <span aria-hidden="true">⌫</span> {words.gone}
        </span>
      );
    case "altered":
    case "absent":
    case "unsettled":
      return (
        <span className="badge warn">
          <span aria-hidden="true">↻</span> {words[standing]}
        </span>
      );
    case "unconfirmed":
      return (
        <span className="badge warn">
          <span aria-hidden="true">⚠</span> {words.unconfirmed}
        </span>
      );
  }
}
