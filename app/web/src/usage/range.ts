/** Which time a report is about: chosen in words, asked for in seconds. */
import { dayAt, dayStart, daysBetween, daysLater } from "../ui/zones";

export const PRESETS = ["today", "week", "days30", "month", "custom"] as const;
export type Preset = (typeof PRESETS)[number];
export type Width = "1h" | "1d" | "1mo";

export interface Range {
  preset: Preset;
  /** Of a custom range, first and last day, both in it. */
  from: string;
  to: string;
}

/** Unix seconds, the end exclusive, and how wide a bar is. */
export interface Span {
  start: number;
  end: number;
  width: Width;
}

const MOST_DAYS = 3660;

/** The span of a range on a zone's calendar. It ends with a day, also one that has not ended: the bars stay where they
 * are while it goes on. */
export function spanOf(range: Range, zone: string, now: number): Span {
  const [first, last] = daysOf(range, dayAt(now, zone));
  return { start: dayStart(first, zone), end: dayStart(daysLater(last, 1), zone), width: widthOf(first, last) };
}

/** What is wrong with a range, if anything. */
export function wrongWith(range: Range): "incomplete" | "backwards" | "tooLong" | null {
  if (range.preset !== "custom") return null;
  const day = /^\d{4}-\d{2}-\d{2}$/;
  if (!day.test(range.from) || !day.test(range.to) || range.from < "1970-01-02") return "incomplete";
  if (range.to < range.from) return "backwards";
  return daysBetween(range.from, range.to) > MOST_DAYS ? "tooLong" : null;
}

function daysOf(range: Range, today: string): [string, string] {
  switch (range.preset) {
    case "today":
      return [today, today];
    case "week":
      return [daysLater(today, -6), today];
    case "days30":
      return [daysLater(today, -29), today];
    case "month":
      return [`${today.slice(0, 8)}01`, today];
    case "custom":
      return [range.from, range.to];
  }
}

function widthOf(first: string, last: string): Width {
  const days = daysBetween(first, last) + 1;
  if (days <= 2) return "1h";
  return days <= 100 ? "1d" : "1mo";
}
