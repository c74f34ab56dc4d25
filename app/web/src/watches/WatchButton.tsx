/** Below an answer: has its question asked again when its documents change. */
import { Link } from "wouter";
import type { Scope } from "../ask/scope";
import { t } from "../strings";
import { useNotices } from "../ui/notices";
import { ProblemNote } from "../ui/ProblemNote";
import { isWatched, useNewWatch, useWatches } from "./watches";

export function WatchButton({ question, scope }: { question: string; scope: Scope }) {
  const words = t.watches;
  const say = useNotices();
  const found = useWatches();
  const made = useNewWatch();
  if (found.data === undefined) return null;
  if (isWatched(found.data.data, question, scope)) {
    return (
      <Link href="/watches" className="small">
        {words.watching}
      </Link>
    );
  }
  return (
    <>
      <button
        type="button"
        className="plain small"
        title={words.watchTitle}
        disabled={made.isPending}
        onClick={() => made.mutate({ question, scope }, { onSuccess: () => say(words.made) })}
      >
        {words.watch}
      </button>
      {made.isError && <ProblemNote problem={made.error} />}
    </>
  );
}
