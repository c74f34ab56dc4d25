/** What became of a footnote's passage, in words, and both wordings of one that was altered. */
import type { Aged, Change, Citation } from "../api/types";
import { t } from "../strings";
import { WordRuns } from "../ui/WordRuns";
import { sinceOf } from "./ageing";

export function Since({ citation }: { citation: Pick<Citation, "version" | keyof Aged> }) {
  const words = t.ask.footnote.since;
  const since = sinceOf(citation);
  const { current_version: version, current_page_start: first, current_page_end: last, changes = [] } = citation;
  if (since === "same" || since === "deleted") return null;
  const place = words.place(version ?? null, first ?? null, last ?? null);
  return (
    <div className="ask-since small">
      <p>{words[since](place)}</p>
      {since === "altered" && <Wordings changes={changes} place={place} />}
    </div>
  );
}

/** Both wordings beside each other; what only one has is marked. */
export function Wordings({ changes, place }: { changes: readonly Change[]; place: string }) {
  const words = t.ask.footnote.since;
  return (
    <div className="ask-wordings">
      <figure>
        <figcaption className="quiet">{words.before}</figcaption>
        <blockquote dir="auto">
          <WordRuns runs={changes} only="removed" />
        </blockquote>
      </figure>
      <figure>
        <figcaption className="quiet">{words.now(place)}</figcaption>
        <blockquote dir="auto">
          <WordRuns runs={changes} only="added" />
        </blockquote>
      </figure>
    </div>
  );
}
