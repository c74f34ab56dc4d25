/** Sizes of models and memories, in gigabytes of 1000³ bytes. */
export function gigabytes(bytes: number, locale?: string): string {
  const how = { style: "unit", unit: "gigabyte", maximumFractionDigits: bytes < 10e9 ? 1 : 0 } as const;
  return new Intl.NumberFormat(locale, how).format(bytes / 1e9);
}
