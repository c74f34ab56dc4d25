/** The text of a watched question's answer, and a link to each passage that it cites. */
import type { Cited, WatchedAnswer } from "../api/types";
import { t } from "../strings";
import { addressOf } from "../viewer/place";
import { plainText } from "./watches";

export function Evidence({ answer }: { answer: WatchedAnswer }) {
  const all = answer.citations as unknown as Cited[];
  const cited = [...new Map(all.map((one) => [`${one.document_id} ${one.start_char} ${one.end_char}`, one])).values()];
  return (
    <>
      <p className="watch-text" dir="auto">
        {plainText(answer.answer)}
      </p>
      {cited.length > 0 && (
        <ol className="small watch-cited">
          {cited.map((one) => (
            <li key={`${one.document_id} ${one.start_char} ${one.end_char}`}>
              <CitedLink cited={one} />
            </li>
          ))}
        </ol>
      )}
    </>
  );
}

export function CitedLink({ cited }: { cited: Cited }) {
  const { document_id: document, version, start_char: start, end_char: end, page_start: page, filename } = cited;
  return (
    <a href={addressOf({ document, version, span: { start, end }, marks: [], page })}>
      {t.watches.place(filename, page)}
    </a>
  );
}
