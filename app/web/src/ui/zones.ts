/** Time zones: which there are, and when a day of the calendar begins in one. A day is written as a date input does,
 * `2025-11-20`; moments are Unix seconds. */

const DAY = 86_400;
const clocks = new Map<string, Intl.DateTimeFormat>();

/** The browser's own zone. */
export function ownZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
}

/** Every zone the browser knows, by name, with UTC first. */
export function everyZone(): string[] {
  const zones = new Set(Intl.supportedValuesOf("timeZone"));
  zones.add(ownZone());
  zones.delete("UTC");
  return ["UTC", ...[...zones].sort()];
}

/** The day it is at a moment. */
export function dayAt(at: number, zone: string): string {
  return dayOf(at + offset(at, zone));
}

/** A day so many days later. */
export function daysLater(day: string, days: number): string {
  return dayOf(midnight(day) + days * DAY);
}

/** How many days from one to another. */
export function daysBetween(from: string, to: string): number {
  return (midnight(to) - midnight(from)) / DAY;
}

/** The first moment of a day. Where clocks go back over midnight the first midnight counts; where they skip it, the
 * moment they do; so the server has it. */
export function dayStart(day: string, zone: string): number {
  const wall = midnight(day);
  const before = offset(wall - DAY, zone);
  const after = offset(wall + DAY, zone);
  const shown = [wall - before, wall - after].filter((at) => at + offset(at, zone) === wall);
  if (shown.length > 0) return Math.min(...shown);
  return change(wall - Math.max(before, after), wall - Math.min(before, after), zone);
}

/** The second in (`early`, `late`] from which on clocks show another time. */
function change(early: number, late: number, zone: string): number {
  const old = offset(early, zone);
  let [from, to] = [early, late];
  while (to - from > 1) {
    const middle = Math.floor((from + to) / 2);
    if (offset(middle, zone) === old) from = middle;
    else to = middle;
  }
  return to;
}

/** How many seconds a zone's clocks are ahead of UTC at a moment. */
function offset(at: number, zone: string): number {
  let clock = clocks.get(zone);
  if (clock === undefined) {
    clock = new Intl.DateTimeFormat("en-u-ca-iso8601-nu-latn", {
      timeZone: zone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
    clocks.set(zone, clock);
  }
  const parts = new Map(clock.formatToParts(at * 1000).map(({ type, value }) => [type, Number(value)]));
  const part = (type: Intl.DateTimeFormatPartTypes) => parts.get(type) ?? 0;
  const wall = Date.UTC(part("year"), part("month") - 1, part("day"), part("hour"), part("minute"), part("second"));
  return wall / 1000 - Math.floor(at);
}

function midnight(day: string): number {
  const at = Date.parse(`${day}T00:00:00Z`) / 1000;
  if (Number.isNaN(at)) throw new RangeError(`not a day: ${day}`);
  return at;
}

function dayOf(wall: number): string {
  return new Date(wall * 1000).toISOString().slice(0, 10);
}
