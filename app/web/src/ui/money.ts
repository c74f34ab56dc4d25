/** Amounts of money as the API writes them: decimal strings with up to twelve decimals. They are added as integers of the
 * smallest unit, never as floating point, so that a sum here is the sum there. */

const DECIMALS = 12;

/** How many of the smallest unit make one of the currency. */
export const ONE = 10n ** BigInt(DECIMALS);

/** A decimal string as an integer of the smallest unit. */
export function unitsOf(value: string): bigint {
  const found = /^(-?)(\d+)(?:\.(\d{1,12}))?$/.exec(value);
  if (found === null) throw new Error(`not an amount: ${value}`);
  const [, sign, whole = "0", fraction = ""] = found;
  const units = BigInt(whole) * ONE + BigInt(fraction.padEnd(DECIMALS, "0"));
  return sign === "-" ? -units : units;
}

/** An integer of the smallest unit as a decimal string with all its decimals. */
export function decimalOf(units: bigint): string {
  const size = units < 0n ? -units : units;
  return `${units < 0n ? "-" : ""}${size / ONE}.${String(size % ONE).padStart(DECIMALS, "0")}`;
}

/** The sum of amounts; null where none of them is known. */
export function sumOf(values: Iterable<string | null>): bigint | null {
  let sum: bigint | null = null;
  for (const value of values) if (value !== null) sum = (sum ?? 0n) + unitsOf(value);
  return sum;
}

/** An amount for people: two decimals, or as many more as small ones need to show three digits. */
export function moneyText(units: bigint, currency: string, locale?: string): string {
  const most = Math.max(2, decimalsToShow(units));
  // As a string it keeps every digit (ECMA-402, Intl mathematical values).
  return writer(currency, 2, most, locale)(decimalOf(units) as Intl.StringNumericLiteral);
}

/** Writes amounts of a currency, also of one the browser has no form for. */
function writer(currency: string, least: number, most: number, locale: string | undefined) {
  const digits = { minimumFractionDigits: least, maximumFractionDigits: most } as const;
  try {
    const format = new Intl.NumberFormat(locale, { style: "currency", currency, ...digits });
    return (amount: number | Intl.StringNumericLiteral) => format.format(amount);
  } catch {
    const format = new Intl.NumberFormat(locale, digits);
    return (amount: number | Intl.StringNumericLiteral) => `${format.format(amount)} ${currency.toUpperCase()}`;
  }
}

/** Where the third digit that is not a leading zero stands, for amounts below one. */
function decimalsToShow(units: bigint): number {
  const size = units < 0n ? -units : units;
  if (size === 0n || size >= ONE) return 2;
  const leading = DECIMALS - String(size).length;
  return Math.min(DECIMALS, leading + 3);
}

/** The numbers of an axis, which are no amounts: with no more decimals than one of them needs, and all with as many. */
export function axisText(values: readonly number[], currency: string, locale?: string): string[] {
  const decimals = Math.max(0, ...values.map((value) => decimalsIn(value)));
  const write = writer(currency, decimals, decimals, locale);
  return values.map((value) => write(value));
}

/** Decimals of a number to three digits: an axis counts in steps that floating point does not write exactly. */
function decimalsIn(value: number): number {
  const [, fraction = ""] = Number(value.toPrecision(3)).toFixed(DECIMALS).split(".");
  return fraction.replace(/0+$/, "").length;
}
