/** What is being added: how far all of it is, and a row for each file. */
import { useEffect, useState } from "react";
import { Link } from "wouter";
import { OverviewCard } from "../ask/OverviewCard";
import { t } from "../strings";
import { type Choice, isIdle, type Queue, readyDocuments, shown, summary } from "./queue";
import { useQueue, useUploads } from "./UploadProvider";
import { UploadRow } from "./UploadRow";

const MOST_ROWS = 30;
const MOST_CARDS = 3;

export function UploadPanel() {
  const queue = useQueue();
  const uploads = useUploads();
  if (queue.uploads.length === 0) return null;
  const words = t.documents.uploads;
  const { all, done, failed, asking, unsent } = summary(queue);
  const rows = shown(queue, MOST_ROWS);
  const idle = isIdle(queue);
  const title = !idle ? words.title : done > 0 ? words.titleDone : words.titleFailed;
  return (
    <section className="card uploads" aria-label={title}>
      <div className="uploads-head">
        <h2>{title}</h2>
        <p role="status" className="quiet small">
          {[
            words.progress(done, all),
            asking > 0 ? words.attention(asking) : null,
            failed > 0 ? words.failed(failed) : null,
          ]
            .filter((one) => one !== null)
            .join(" · ")}
        </p>
        <span className="row">
          {idle && done > 0 && (
            <Link className="button" href="/">
              {words.ask}
            </Link>
          )}
          {unsent > 1 && (
            <button type="button" className="plain" onClick={() => uploads.cancel()}>
              {words.cancelAll}
            </button>
          )}
          {(done > 0 || idle) && (
            <button type="button" className="plain" onClick={() => uploads.clean()}>
              {idle ? words.hideAll : words.hide}
            </button>
          )}
        </span>
      </div>
      {!idle && all > 1 && <progress aria-label={words.progress(done, all)} max={all} value={done + failed} />}
      <Held queue={queue} />
      {asking > 1 && <ForAll asking={asking} onChoose={(choice) => chooseAll(queue, choice)} />}
      <ul className={idle && failed === 0 ? "upload-list idle" : "upload-list"}>
        {rows.map((upload) => (
          <UploadRow key={upload.id} upload={upload} />
        ))}
      </ul>
      {readyDocuments(queue)
        .slice(0, MOST_CARDS)
        .map((document) => (
          <OverviewCard key={document.id} document={document} />
        ))}
      {rows.length < all && <p className="uploads-more quiet small">{words.more(all - rows.length)}</p>}
    </section>
  );

  function chooseAll(of: Queue, choice: Choice) {
    const first = of.uploads.find(({ phase }) => phase.at === "asking");
    if (first !== undefined) uploads.choose(first.id, choice, true);
  }
}

/** Says why nothing is sent at the moment, and counts the seconds down. */
function Held({ queue }: { queue: Queue }) {
  const { held } = queue;
  const now = useClock(held !== null);
  if (held === null) return null;
  const seconds = Math.max(1, Math.ceil((held.until - now) / 1000));
  return <p className="held small">{t.documents.uploads.held(seconds, held.because)}</p>;
}

function useClock(runs: boolean): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!runs) return;
    setNow(Date.now());
    const timer = window.setInterval(() => setNow(Date.now()), 1000);
    return () => window.clearInterval(timer);
  }, [runs]);
  return now;
}

function ForAll({ asking, onChoose }: { asking: number; onChoose: (choice: Choice) => void }) {
  const words = t.documents.uploads;
  return (
    <div className="row for-all">
      <span>{words.allAlike(asking)}</span>
      <button type="button" onClick={() => onChoose("version")}>
        {words.asVersion}
      </button>
      <button type="button" onClick={() => onChoose("both")}>
        {words.keepBoth}
      </button>
      <button type="button" onClick={() => onChoose("skip")}>
        {words.skip}
      </button>
    </div>
  );
}
