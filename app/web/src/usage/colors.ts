/** Which colour a group has: the same in every chart it is in. */
import type { Series } from "./stack";

const COLORS = ["--c1", "--c2", "--c3", "--c4", "--c6", "--c5"] as const;
const REST = "--c5";

/** Colours for the series of a chart, in their order. Groups that have one in `before`, another chart, keep it; the others
 * take what is free. */
export function colorsOf(
  series: readonly Series[],
  before: ReadonlyMap<string, string> = new Map(),
): Map<string, string> {
  const names = series.flatMap(({ group }) => (group === null ? [] : [group]));
  const colors = new Map<string, string>();
  for (const name of names) {
    const kept = before.get(name);
    // A rest is grey, so no group beside one is.
    if (kept !== undefined && !(kept === REST && names.length < series.length)) colors.set(name, kept);
  }
  const taken = new Set(colors.values());
  const free = COLORS.filter((color) => !taken.has(color));
  for (const name of names) if (!colors.has(name)) colors.set(name, free.shift() ?? REST);
  return colors;
}

/** The colour of a series among `colors`. */
export function colorOf(colors: ReadonlyMap<string, string>, group: string | null): string {
  return (group === null ? undefined : colors.get(group)) ?? REST;
}
