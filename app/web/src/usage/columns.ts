/** The buckets of a report as the columns of a chart, and its groups as coloured series. */
import { t } from "../strings";
import type { ChartColumn, ChartSeries } from "../ui/Chart";
import { countText } from "../ui/numbers";
import { colorOf } from "./colors";
import type { Width } from "./range";
import type { Series } from "./stack";

const LONG: Record<Width, Intl.DateTimeFormatOptions> = {
  "1h": { dateStyle: "medium", timeStyle: "short" },
  "1d": { weekday: "short", day: "numeric", month: "short", year: "numeric" },
  "1mo": { month: "long", year: "numeric" },
};
const SHORT: Record<Width, Intl.DateTimeFormatOptions> = {
  "1h": { hour: "numeric", minute: "2-digit" },
  "1d": { day: "numeric", month: "short" },
  "1mo": { month: "short", year: "2-digit" },
};

/** Columns for buckets that begin at `starts`, on a zone's clock. */
export function columnsOf(starts: readonly number[], width: Width, zone: string, locale?: string): ChartColumn[] {
  const long = new Intl.DateTimeFormat(locale, { ...LONG[width], timeZone: zone });
  const short = new Intl.DateTimeFormat(locale, { ...SHORT[width], timeZone: zone });
  // Where clocks go back an hour comes twice: its offset tells the two apart.
  const offset = new Intl.DateTimeFormat(locale, { hour: "numeric", timeZone: zone, timeZoneName: "shortOffset" });
  const labels = starts.map((start) => long.format(start * 1000));
  return starts.map((start, column) => {
    const label = labels[column] ?? "";
    const twice = labels.indexOf(label) !== labels.lastIndexOf(label);
    const zoneName = offset.formatToParts(start * 1000).find(({ type }) => type === "timeZoneName")?.value ?? "";
    return { label: twice ? `${label} ${zoneName}` : label, short: short.format(start * 1000) };
  });
}

/** Series of a chart with names and colours. */
export function seriesOf(
  series: readonly Series[],
  nameOf: (group: string) => string,
  colors: ReadonlyMap<string, string>,
): ChartSeries[] {
  return series.map(({ group, values, groups }) => ({
    id: group === null ? "…rest" : `=${group}`,
    label: group === null ? t.usage.chart.others(countText(groups)) : nameOf(group),
    color: colorOf(colors, group),
    values,
  }));
}
