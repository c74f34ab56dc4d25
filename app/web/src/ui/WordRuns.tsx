/** Words of two wordings, with those that only one of them has marked. `only` leaves out the other wording. */
import type { Change } from "../api/types";

interface WordRunsProps {
  runs: readonly Change[];
  only?: "removed" | "added";
}

export function WordRuns({ runs, only }: WordRunsProps) {
  return runs.map(({ kind, text }, at) => {
    const key = `${at}`;
    if (kind === "equal") return <span key={key}>{text}</span>;
    if (only !== undefined && kind !== only) return null;
    return kind === "removed" ? <del key={key}>{text}</del> : <ins key={key}>{text}</ins>;
  });
}
