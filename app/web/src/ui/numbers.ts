/** Counts and moments as people read them where they are. */

const counts = new Intl.NumberFormat();
const compacts = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
const percents = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 0 });
const moments = new Map<string, Intl.DateTimeFormat>();

export function countText(count: number | bigint): string {
  return counts.format(count);
}

/** Short, for axes: 1.2M. */
export function compactText(count: number): string {
  return compacts.format(count);
}

/** A share from 0 to 1. Only all of it is 100 %. */
export function percentText(share: number): string {
  return percents.format(share < 1 ? Math.min(0.99, share) : share);
}

/** How long to wait, in words of one unit: `5 seconds`, `3 minutes`, `2 hours`; never less than it is. */
export function againIn(seconds: number, locale?: string): string {
  const [unit, size] =
    seconds < 120
      ? (["second", 1] as const)
      : seconds < 7_200
        ? (["minute", 60] as const)
        : seconds < 172_800
          ? (["hour", 3_600] as const)
          : (["day", 86_400] as const);
  const how = { style: "unit", unit, unitDisplay: "long" } as const;
  return new Intl.NumberFormat(locale, how).format(Math.ceil(seconds / size));
}

/** A moment, from Unix seconds or RFC 3339, on the clock of a zone or else of the browser. */
export function momentText(at: number | string, zone?: string): string {
  const key = zone ?? "";
  let format = moments.get(key);
  if (format === undefined) {
    format = new Intl.DateTimeFormat(undefined, {
      dateStyle: "medium",
      timeStyle: "short",
      ...(zone === undefined ? {} : { timeZone: zone }),
    });
    moments.set(key, format);
  }
  return format.format(typeof at === "number" ? at * 1000 : Date.parse(at));
}
