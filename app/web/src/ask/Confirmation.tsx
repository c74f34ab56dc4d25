/** Whether a passage was found to say what the answer says, in words. */
import type { Citation } from "../api/types";
import { t } from "../strings";

export function Confirmation({ citation }: { citation: Citation }) {
  const words = t.ask.footnote;
  return (
    <p className="small ask-confirmation">
      {citation.verified ? (
        <span className="badge good">
          <span aria-hidden="true">✓</span> {words.confirmed}
        </span>
      ) : (
        <span className="badge warn">
          <span aria-hidden="true">⚠</span> {words.unconfirmed}
        </span>
      )}{" "}
      <span className="quiet">{words.support(citation.support)}</span>
      {!citation.verified && <span className="ask-why">{words.unconfirmedWhy}</span>}
      {citation.origin === "attributed" && <span className="ask-why quiet">{words.attributed}</span>}
    </p>
  );
}
