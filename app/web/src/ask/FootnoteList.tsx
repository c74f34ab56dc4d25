/** The footnotes of what is written, one a passage: what the cards show, for those who do not point. */
import type { Citation } from "../api/types";
import { t } from "../strings";
import { MarkedText } from "../viewer/MarkedText";
import { Confirmation } from "./Confirmation";
import { useGone } from "./gone";
import { PassageLink } from "./PassageLink";
import { standingOf } from "./parts";
import { pageWords, passageHref } from "./places";

interface FootnoteListProps {
  citations: readonly Citation[];
  /** What their numbers are shown as. */
  numbers: ReadonlyMap<number, number>;
  onOpen: ((citation: Citation) => void) | null;
}

/** Open until the reader closes it, whatever the answer is. */
export function FootnoteList({ citations, numbers, onOpen }: FootnoteListProps) {
  const words = t.ask.footnote;
  const passages = byPassage(citations);
  const doubtful = citations.filter((citation) => standingOf(citation, false) === "unconfirmed").length;
  return (
    <details className="ask-footnotes" open>
      <summary>
        {words.openList(passages.length)}
        {doubtful > 0 && <span className="badge warn">{words.unconfirmedCount(doubtful)}</span>}
      </summary>
      <ol>
        {passages.map(([citation, ...others]) => (
          <li key={`${passageHref(citation)} ${citation.index}`}>
            <PassageLink passage={citation} onOpen={onOpen}>
              <span className="ask-number">{numbers.get(citation.index) ?? citation.index}</span> {citation.filename}
              {pageWords(citation) !== "" && `, ${pageWords(citation)}`}
            </PassageLink>
            <blockquote>
              <MarkedText text={citation.cited_text} start={citation.start_char} />
            </blockquote>
            <Verdict citations={[citation, ...others]} />
          </li>
        ))}
      </ol>
    </details>
  );
}

type Several = [Citation, ...Citation[]];

/** What was found about the sentences that name a passage. */
function Verdict({ citations }: { citations: Several }) {
  const confirmed = citations.filter((citation) => citation.verified).length;
  const gone = useGone().has(citations[0].document_id);
  if (gone || confirmed === 0 || confirmed === citations.length) {
    return <Confirmation citation={citations[0]} standing={standingOf(citations[0], false, gone)} />;
  }
  return (
    <p className="small ask-confirmation">
      <span className="badge warn">
        <span aria-hidden="true">⚠</span> {t.ask.footnote.confirmedPartly(confirmed, citations.length)}
      </span>
    </p>
  );
}

/** The footnotes of each passage together. */
function byPassage(citations: readonly Citation[]): Several[] {
  const found = new Map<string, Several>();
  for (const citation of citations) {
    const key = `${passageHref(citation)} ${citation.index}`;
    const known = found.get(key);
    if (known === undefined) found.set(key, [citation]);
    else known.push(citation);
  }
  return [...found.values()];
}
