/** What changed from an earlier version of a document to the one that is used for answers, passage by passage. */
import { useInfiniteQuery } from "@tanstack/react-query";
import type { ComparedChange } from "../api/types";
import { t } from "../strings";
import { MoreButton } from "../ui/MoreButton";
import { ProblemNote } from "../ui/ProblemNote";
import { addressOf } from "../viewer/place";
import { ChangedWords } from "./ChangedWords";
import { compareVersions } from "./server";
import { numberWords } from "./words";

interface ChangesProps {
  document: string;
  version: number;
  live: number | null;
}

export function Changes({ document, version, live }: ChangesProps) {
  const words = t.documents.versions;
  const found = useInfiniteQuery({
    queryKey: ["documents", "compared", document, version, live],
    queryFn: ({ signal, pageParam }) => compareVersions(document, version, pageParam, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_cursor,
  });
  if (found.isError) return <ProblemNote problem={found.error} onRetry={() => void found.refetch()} />;
  const [first] = found.data?.pages ?? [];
  if (first === undefined) {
    return (
      <p role="status" className="quiet compared">
        {words.comparing}
      </p>
    );
  }
  const kinds = (["altered", "added", "removed", "moved"] as const).filter((kind) => first.counts[kind] > 0);
  return (
    <div className="compared stack">
      <p role="status" className="quiet">
        {kinds.length === 0
          ? words.equal
          : kinds.map((kind) => words.numbers(words.kinds[kind], numberWords(first.counts[kind]))).join(" · ")}
      </p>
      <ul>
        {found.data?.pages
          .flatMap(({ data, old, new: now }) => data.map((change) => ({ change, old, now })))
          .map(({ change, old, now }) => (
            <li key={`${change.old?.start_char ?? ""}-${change.new?.start_char ?? ""}`}>
              <Passage change={change} document={document} old={old.version} now={now.version} />
            </li>
          ))}
      </ul>
      <MoreButton list={found} />
    </div>
  );
}

interface PassageProps {
  change: ComparedChange;
  document: string;
  old: number;
  now: number;
}

function Passage({ change, document, old, now }: PassageProps) {
  const words = t.documents.versions;
  const passage = change.new ?? change.old;
  if (passage === null) return null;
  const { start_char: start, end_char: end, page_start: page } = passage;
  const version = change.new === null ? old : now;
  const place = [...change.section, ...(page === null ? [] : [words.page(page)])].join(" › ");
  return (
    <>
      <p className="small">
        <strong>{words.kinds[change.kind]}</strong> <span className="quiet">{place}</span>{" "}
        <a href={addressOf({ document, version, span: { start, end }, marks: [], page })}>
          {words.showPassage(version)}
        </a>
      </p>
      <ChangedWords change={change} text={passage.text} old={old} now={now} />
    </>
  );
}
