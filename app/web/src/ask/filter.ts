/** Conditions on documents' details, row by row, and the filter of the API they are. */

export const OPERATORS = ["eq", "ne", "in", "nin", "gte", "gt", "lte", "lt", "present", "absent"] as const;
export type Operator = (typeof OPERATORS)[number];

export interface Condition {
  /** Its own, so that a row is the same row when another goes. */
  id: number;
  field: string;
  operator: Operator;
  value: string;
}

export interface Conditions {
  match: "all" | "any";
  rows: Condition[];
}

type Value = string | number | boolean | null;

export const NO_CONDITIONS: Conditions = { match: "all", rows: [] };

export function needsValue(operator: Operator): boolean {
  return operator !== "present" && operator !== "absent";
}

export function takesList(operator: Operator): boolean {
  return operator === "in" || operator === "nin";
}

/** Whether a row says something; one that does not is left out. */
export function isComplete({ field, operator, value }: Condition): boolean {
  return field.trim() !== "" && (!needsValue(operator) || value.trim() !== "");
}

/** The conditions as the API takes them, null without any. */
export function asFilter({ match, rows }: Conditions): Record<string, unknown> | null {
  const parts = rows.filter(isComplete).map(asPart);
  const [first] = parts;
  if (first === undefined) return null;
  return parts.length === 1 ? first : { [match === "all" ? "$and" : "$or"]: parts };
}

function asPart({ field, operator, value }: Condition): Record<string, unknown> {
  const name = field.trim();
  // A name that begins with $ is an operator's; the server says so.
  if (operator === "present") return { [name]: { $ne: null } };
  if (operator === "absent") return { [name]: { $eq: null } };
  if (takesList(operator)) return { [name]: { [`$${operator}`]: listOf(value).map(valueTyped) } };
  return { [name]: { [`$${operator}`]: valueTyped(value) } };
}

/** What was typed, as JSON has it: a number, true or false, else text; in quotes it is text whatever it is. */
export function valueTyped(typed: string): Value {
  const trimmed = typed.trim();
  if (/^"(?:.*)"$/s.test(trimmed) && trimmed.length >= 2) return trimmed.slice(1, -1);
  if (trimmed === "true") return true;
  if (trimmed === "false") return false;
  if (/^-?(?:0|[1-9]\d*)(?:\.\d+)?$/.test(trimmed)) {
    const number = Number(trimmed);
    // A number that would lose digits, such as a long identifier, stays text.
    if (Number.isFinite(number) && (trimmed.includes(".") || Number.isSafeInteger(number))) return number;
  }
  return trimmed;
}

/** Values between commas; one in quotes may have commas in it. */
export function listOf(typed: string): string[] {
  return Array.from(typed.matchAll(/\s*("[^"]*"|[^,]+)\s*(?:,|$)/g), ([, value = ""]) => value.trim()).filter(
    (value) => value !== "",
  );
}
