/** From what reports say to what a chart shows: a column for every bucket, a series for every group of some size, and the
 * rest in one series, all of it exactly. */

/** What one group took in one bucket. */
export interface Part {
  start: number;
  group: string;
  amount: bigint;
}

export interface Series {
  /** Null is the rest. */
  group: string | null;
  values: bigint[];
  total: bigint;
  /** How many groups are in it. */
  groups: number;
}

/** Series of parts over the buckets that begin at `starts`: the `most` largest groups, and what is left of the others.
 * Buckets without a part are zero; groups in `order` come in that order and are all shown. */
export function stackOf(
  starts: readonly number[],
  parts: Iterable<Part>,
  { most = 5, order }: { most?: number; order?: readonly string[] } = {},
): Series[] {
  const columns = new Map(starts.map((start, column) => [start, column]));
  const groups = new Map<string, Series>();
  for (const { start, group, amount } of parts) {
    const column = columns.get(start);
    if (column === undefined) continue;
    const series = groups.get(group) ?? { group, values: starts.map(() => 0n), total: 0n, groups: 1 };
    series.values[column] = (series.values[column] ?? 0n) + amount;
    series.total += amount;
    groups.set(group, series);
  }
  const found = [...groups.values()].filter((series) => series.values.some((value) => value !== 0n));
  if (order !== undefined) {
    return found.sort((one, other) => order.indexOf(one.group ?? "") - order.indexOf(other.group ?? ""));
  }
  found.sort(bySize);
  // One group more takes no more room than a rest of one.
  if (found.length <= most + 1) return found;
  return [...found.slice(0, most), rest(found.slice(most))];
}

function rest(series: readonly Series[]): Series {
  const length = series[0]?.values.length ?? 0;
  const values = Array.from({ length }, (_, column) =>
    series.reduce((sum, one) => sum + (one.values[column] ?? 0n), 0n),
  );
  return {
    group: null,
    values,
    total: series.reduce((sum, one) => sum + one.total, 0n),
    groups: series.length,
  };
}

function bySize(one: Series, other: Series): number {
  if (one.total !== other.total) return one.total > other.total ? -1 : 1;
  return (one.group ?? "") < (other.group ?? "") ? -1 : 1;
}
