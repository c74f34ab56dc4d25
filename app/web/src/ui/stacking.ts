/** Series of exact amounts as the numbers a stacked chart draws. */

/** For each series, what it and those below it come to in every column, in units of `scale`. Added as integers; only
 * what is drawn is rounded. */
export function stacked(series: readonly (readonly bigint[])[], columns: number, scale: bigint): number[][] {
  const heights: bigint[] = Array(columns).fill(0n);
  return series.map((values) =>
    heights.map((height, column) => {
      const reached = height + (values[column] ?? 0n);
      heights[column] = reached;
      return drawn(reached, scale);
    }),
  );
}

/** An amount as a number to draw: whole units and the rest apart, as large ones would lose the rest. */
export function drawn(amount: bigint, scale: bigint): number {
  return Number(amount / scale) + Number(amount % scale) / Number(scale);
}

/** What a series, or a column of all series, comes to. */
export function total(values: readonly bigint[]): bigint {
  return values.reduce((sum, value) => sum + value, 0n);
}
