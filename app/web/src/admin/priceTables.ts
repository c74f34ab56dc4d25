/** Prices by model: every kind of tokens has a row, also one that has no price. */
import type { Price } from "../api/types";

export const METERS = ["input", "cached_input", "output", "embedding"] as const;
export type Meter = (typeof METERS)[number];

export type PriceState = "now" | "past" | "coming";

export interface PriceRow {
  meter: string;
  /** Null where the kind has no price in force. */
  price: Price | null;
}

export interface PriceTable {
  model: string;
  rows: PriceRow[];
}

export function stateOf(price: Price, now: number): PriceState {
  if (price.effective_from > now) return "coming";
  return price.effective_to === null || price.effective_to > now ? "now" : "past";
}

/** One table a model, in the order of their names; of each kind the newest price first.
 *
 * A kind without a price in force is named too: models that write have all but `embedding`, models that embed only that.
 */
export function priceTables(prices: readonly Price[], now: number, onlyNow: boolean): PriceTable[] {
  const models = [...new Set(prices.map(({ model }) => model))].sort((one, other) => one.localeCompare(other));
  return models.map((model) => {
    const own = prices.filter((price) => price.model === model);
    const kinds = kindsOf(own);
    const rows = kinds.flatMap((meter) => {
      const found = own
        .filter((price) => price.meter === meter)
        .sort((one, other) => other.effective_from - one.effective_from);
      const inForce = found.some((price) => stateOf(price, now) === "now");
      const shown = onlyNow ? found.filter((price) => stateOf(price, now) === "now") : found;
      return [...(inForce ? [] : [{ meter, price: null }]), ...shown.map((price) => ({ meter, price }))];
    });
    return { model, rows };
  });
}

function kindsOf(prices: readonly Price[]): string[] {
  const there = new Set<string>(prices.map(({ meter }) => meter));
  const writes = ["input", "cached_input", "output"].some((meter) => there.has(meter));
  const needed = METERS.filter((meter) => there.has(meter) || (writes && meter !== "embedding"));
  return [...needed, ...[...there].filter((meter) => !(METERS as readonly string[]).includes(meter))];
}

/** Models that were used without a price and have none in force, with the number of such calls, most first. */
export function withoutPrice(
  unpriced: ReadonlyMap<string, number>,
  prices: readonly Price[],
  now: number,
): [model: string, calls: number][] {
  const priced = new Set(prices.filter((price) => stateOf(price, now) === "now").map(({ model }) => model));
  return [...unpriced]
    .filter(([model, calls]) => calls > 0 && !priced.has(model))
    .sort((one, other) => other[1] - one[1]);
}
