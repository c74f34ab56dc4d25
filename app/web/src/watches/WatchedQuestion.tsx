/** One watched question: its state, its answer now, its changes, and what can be done with it. */
import { useId } from "react";
import type { Watch } from "../api/types";
import { t } from "../strings";
import { MoreButton } from "../ui/MoreButton";
import { useNotices } from "../ui/notices";
import { ProblemNote } from "../ui/ProblemNote";
import { Evidence } from "./Evidence";
import { WatchChange } from "./WatchChange";
import { usePause, useRemoval, useWatchEvents } from "./watches";

export function WatchedQuestion({ watch, fresh }: { watch: Watch; fresh: boolean }) {
  const words = t.watches;
  const id = useId();
  const say = useNotices();
  const pause = usePause(watch.id);
  const removal = useRemoval(watch.id);
  const problem = pause.error ?? removal.error;
  const times = [
    words.states[watch.state],
    ...(watch.looked_at === null ? [] : [words.lookedAt(watch.looked_at)]),
    ...(watch.due_at === null || watch.state === "waiting" ? [] : [words.dueAt(watch.due_at)]),
  ];
  return (
    <article aria-labelledby={id} className={fresh ? "watch fresh" : "watch"}>
      <h2 id={id}>
        {watch.question} {fresh && <span className="badge">{words.new}</span>}
      </h2>
      <Scoped watch={watch} />
      <p className="quiet small">{times.join(" · ")}</p>
      {watch.state_detail !== null && <p className="small">{watch.state_detail}</p>}
      {watch.answer !== null && (
        <section>
          <h3>{words.answerNow}</h3>
          <Evidence answer={watch.answer} />
        </section>
      )}
      {watch.answer !== null && <Changed watch={watch} open={fresh} />}
      <div className="row">
        <button
          type="button"
          className="plain small"
          disabled={pause.isPending}
          onClick={() => pause.mutate(!watch.paused)}
        >
          {watch.paused ? words.resume : words.pause}
        </button>
        <button
          type="button"
          className="plain small"
          disabled={removal.isPending}
          onClick={() => removal.mutate(undefined, { onSuccess: () => say(words.removed) })}
        >
          {words.remove}
        </button>
      </div>
      {problem !== null && <ProblemNote problem={problem} />}
    </article>
  );
}

function Scoped({ watch }: { watch: Watch }) {
  const words = t.watches;
  const parts = [
    ...(watch.collection_ids === null ? [] : [words.someCollections(watch.collection_ids.length)]),
    ...(watch.document_ids === null ? [] : [words.someDocuments(watch.document_ids.length)]),
    ...(watch.filter === null ? [] : [words.someDetails]),
  ];
  if (parts.length === 0) return null;
  return (
    <p className="quiet small">
      {words.only} {parts.join(", ")}
    </p>
  );
}

function Changed({ watch, open }: { watch: Watch; open: boolean }) {
  const words = t.watches;
  const found = useWatchEvents(watch.id, watch.changed_at);
  if (watch.changed_at === null) return <p className="quiet small">{words.unchanged}</p>;
  if (found.isError) return <ProblemNote problem={found.error} onRetry={() => void found.refetch()} />;
  return (
    <details open={open}>
      <summary>{words.changes}</summary>
      <ul className="plain-list stack">
        {found.data?.pages.flatMap(({ data }) =>
          data.map((event) => (
            <li key={event.id}>
              <WatchChange event={event} />
            </li>
          )),
        )}
      </ul>
      <MoreButton list={found} />
    </details>
  );
}
