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
  const options = { minimumFractionDigits: 2, maximumFractionDigits: most } as const;
  // As a string it keeps every digit (ECMA-402, Intl mathematical values).
  const value = decimalOf(units) as Intl.StringNumericLiteral;
  try {
    return new Intl.NumberFormat(locale, { style: "currency", currency, ...options }).format(value);
  } catch {
    return `${new Intl.NumberFormat(locale, options).format(value)} ${currency.toUpperCase()}`;
  }
}

/** Where the third digit that is not a leading zero stands, for amounts below one. */
function decimalsToShow(units: bigint): number {
  const size = units < 0n ? -units : units;
  if (size === 0n || size >= ONE) return 2;
  const leading = DECIMALS - String(size).length;
  return Math.min(DECIMALS, leading + 3);
}
