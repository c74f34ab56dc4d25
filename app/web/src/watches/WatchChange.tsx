/** A change of a watched question: both answers, and the passages that made the difference, their words side by side. */
import type { Cited, WatchDifference, WatchEvent } from "../api/types";
import { t } from "../strings";
import { WordRuns } from "../ui/WordRuns";
import { CitedLink } from "./Evidence";
import { plainText } from "./watches";

export function WatchChange({ event }: { event: WatchEvent }) {
  const words = t.watches;
  return (
    <div className="watch-change">
      <p className="quiet small">{words.changedAt(event.created_at)}</p>
      <Sides
        before={
          <p className="watch-text" dir="auto">
            {plainText(event.before.answer)}
          </p>
        }
        after={
          <p className="watch-text" dir="auto">
            {plainText(event.after.answer)}
          </p>
        }
      />
      <ul className="plain-list">
        {event.differences.map((difference, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a list that never changes
          <li key={at}>
            <Difference difference={difference} />
          </li>
        ))}
      </ul>
    </div>
  );
}

function Difference({ difference }: { difference: WatchDifference }) {
  const words = t.watches;
  const before = difference.before as unknown as Cited | null;
  const after = difference.after as unknown as Cited | null;
  const one = after ?? before;
  return (
    <div className="stack">
      <p className="small">{words.differs(difference.kinds)}</p>
      {before !== null && after !== null && (
        <Sides
          before={<Wording cited={before} runs={difference.changes} only="removed" />}
          after={<Wording cited={after} runs={difference.changes} only="added" />}
        />
      )}
      {(before === null) !== (after === null) && one !== null && (
        <figure className="watch-side">
          <figcaption className="quiet small">{after === null ? words.gone : words.come}</figcaption>
          <Wording cited={one} runs={[{ kind: "equal", text: one.cited_text }]} only="added" />
        </figure>
      )}
    </div>
  );
}

interface WordingProps {
  cited: Cited;
  runs: WatchDifference["changes"];
  only: "removed" | "added";
}

function Wording({ cited, runs, only }: WordingProps) {
  return (
    <>
      <blockquote dir="auto">
        <WordRuns runs={runs} only={only} />
      </blockquote>
      <p className="small">
        <CitedLink cited={cited} />
      </p>
    </>
  );
}

function Sides({ before, after }: { before: React.ReactNode; after: React.ReactNode }) {
  const words = t.watches;
  return (
    <div className="watch-sides">
      <figure className="watch-side">
        <figcaption className="quiet small">{words.before}</figcaption>
        {before}
      </figure>
      <figure className="watch-side">
        <figcaption className="quiet small">{words.after}</figcaption>
        {after}
      </figure>
    </div>
  );
}
