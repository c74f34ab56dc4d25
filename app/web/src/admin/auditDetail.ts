/** What an entry of the audit log says, as names and words. */
import { decimalOf } from "../ui/money";
import { countText, momentText } from "../ui/numbers";

type Detail = Record<string, unknown>;

/** The members of a detail that say something; what is inside of one is named with it. */
export function linesOf(detail: Detail, prefix = ""): { name: string; text: string }[] {
  return Object.entries(detail).flatMap(([name, value]) => {
    const called = `${prefix}${name.replace(/_pico$/, "").replaceAll("_", " ")}`;
    if (isDetail(value)) return linesOf(value, `${called}, `);
    const text = wordsOf(name, value, detail);
    return text === "" ? [] : [{ name: called, text }];
  });
}

/** A detail without ids, which the sentence of an entry has names for; collections are called by their names. */
export function withNames(detail: Detail, collections: ReadonlyMap<string, string>): Detail {
  return Object.fromEntries(
    Object.entries(detail)
      .filter(([name]) => !name.endsWith("_id"))
      .map(([name, value]) => {
        if (isDetail(value)) return [name, withNames(value, collections)];
        if (name !== "collections" || !Array.isArray(value)) return [name, value];
        return [name, value.map((id) => collections.get(String(id)) ?? id)];
      }),
  );
}

const MOMENT = /_(at|from|to|time|until)$/;

function wordsOf(name: string, value: unknown, beside: Detail): string {
  if (value === null || value === undefined || value === "") return "";
  if (Array.isArray(value)) return value.map(String).join(", ");
  if (typeof value !== "number") return String(value);
  // Years of seconds: a moment and no count.
  if (MOMENT.test(name) && value > 1e8) return momentText(value > 1e14 ? value / 1e6 : value);
  // Money is kept in the smallest unit.
  const money = name.endsWith("_pico") || (name === "limit_value" && beside.unit === "cost");
  if (money) return decimalOf(BigInt(value)).replace(/(\.\d\d\d*?)0+$/, "$1");
  return Number.isInteger(value) ? countText(value) : String(value);
}

function isDetail(value: unknown): value is Detail {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
