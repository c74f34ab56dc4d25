/** The words of a change: in one line, or in both wordings beside each other where they have little in common. */
import type { Change, ComparedChange } from "../api/types";
import { t } from "../strings";
import { WordRuns } from "../ui/WordRuns";

interface ChangedWordsProps {
  change: Pick<ComparedChange, "kind" | "words">;
  text: string;
  old: number;
  now: number;
}

/** `text` is the passage that was added, removed or moved; `old` and `now` are the versions. */
export function ChangedWords({ change, text, old, now }: ChangedWordsProps) {
  const runs = runsOf(change, text);
  if (change.kind !== "altered" || !isRewritten(runs)) {
    return (
      <blockquote dir="auto">
        <WordRuns runs={runs} />
      </blockquote>
    );
  }
  return (
    <div className="compared-wordings">
      <Wording runs={runs} version={old} only="removed" />
      <Wording runs={runs} version={now} only="added" />
    </div>
  );
}

interface WordingProps {
  runs: readonly Change[];
  version: number;
  only: "removed" | "added";
}

function Wording({ runs, version, only }: WordingProps) {
  return (
    <figure>
      <figcaption className="quiet small">{t.documents.versions.inVersion(version)}</figcaption>
      <blockquote dir="auto">
        <WordRuns runs={runs} only={only} />
      </blockquote>
    </figure>
  );
}

/** Whether less than half of both wordings is the same: one line of such words cannot be read. */
export function isRewritten(runs: readonly Change[]): boolean {
  const length = { equal: 0, removed: 0, added: 0 };
  for (const { kind, text } of runs) length[kind] += text.length;
  return length.removed > 0 && length.added > 0 && length.removed + length.added > 2 * length.equal;
}

function runsOf({ kind, words }: Pick<ComparedChange, "kind" | "words">, text: string): readonly Change[] {
  return kind === "altered" ? words : [{ kind: kind === "moved" ? "equal" : kind, text }];
}
