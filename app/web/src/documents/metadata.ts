/** A document's own fields as rows of a form and back, exactly; and conditions on fields as the API's filter. */
import type { Metadata } from "../api/types";
import { t } from "../strings";

type Scalar = string | number | boolean | null;

export type Kind = "text" | "number" | "truth" | "empty" | "list";

export interface Row {
  /** Only to tell rows apart while they are edited. */
  id: number;
  key: string;
  kind: Kind;
  value: string;
}

export function rowsOf(metadata: Metadata): Row[] {
  return Object.entries(metadata).map(([key, value], id) => ({ id, key, ...shown(value) }));
}

/** The fields of the rows, or what is wrong with them in a sentence. */
export function metadataOf(rows: readonly Row[]): { metadata: Metadata } | { wrong: string } {
  const say = t.documents.metadata.wrong;
  const fields = new Map<string, Scalar | Scalar[]>();
  for (const { key: typed, kind, value } of rows) {
    const key = typed.trim();
    if (key === "") return { wrong: say.unnamed };
    if (fields.has(key)) return { wrong: say.twice(key) };
    const read = valueFrom(kind, value);
    if (read === undefined) return { wrong: kind === "list" ? say.list(key) : say.number(key) };
    fields.set(key, read);
  }
  return { metadata: Object.fromEntries(fields) };
}

/** Fields whose number a JavaScript number cannot hold: written back, they would be another. */
export function inexact(metadata: Metadata): string[] {
  const lost = (value: Scalar) => typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value);
  return Object.entries(metadata)
    .filter(([, value]) => (Array.isArray(value) ? value.some(lost) : lost(value)))
    .map(([key]) => key);
}

function shown(value: Scalar | Scalar[]): { kind: Kind; value: string } {
  if (Array.isArray(value)) return { kind: "list", value: listText(value) };
  if (value === null) return { kind: "empty", value: "" };
  if (typeof value === "boolean") return { kind: "truth", value: String(value) };
  if (typeof value === "number") return { kind: "number", value: String(value) };
  return { kind: "text", value };
}

function valueFrom(kind: Kind, value: string): Scalar | Scalar[] | undefined {
  switch (kind) {
    case "text":
      return value;
    case "number":
      return numberOf(value);
    case "truth":
      return value === "true";
    case "empty":
      return null;
    case "list":
      return listOf(value);
  }
}

/** A number as people type it; nothing where it is none (an empty text is not zero). */
export function numberOf(text: string): number | undefined {
  const trimmed = text.trim();
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(trimmed)) return undefined;
  const value = Number(trimmed);
  return Number.isFinite(value) ? value : undefined;
}

/** A list as text: values separated by commas; texts that look like something else in quotation marks, as in JSON. */
function listText(values: readonly Scalar[]): string {
  const isPlain = (text: string) => text !== "" && text === text.trim() && !/[",\\\n]/.test(text) && !looksTyped(text);
  return values.map((one) => (typeof one === "string" && isPlain(one) ? one : JSON.stringify(one))).join(", ");
}

/** The list a text is; nothing where a quotation mark is not closed. */
function listOf(text: string): Scalar[] | undefined {
  const values: Scalar[] = [];
  let rest = text.trim();
  while (rest !== "") {
    const quoted = /^"(?:[^"\\]|\\.)*"\s*(?:,|$)/s.exec(rest);
    if (quoted === null && rest.startsWith('"')) return undefined;
    const part = quoted?.[0] ?? /^[^,]*(?:,|$)/.exec(rest)?.[0] ?? rest;
    const item = part.replace(/,$/, "").trim();
    if (quoted !== null) {
      try {
        values.push(JSON.parse(item) as string);
      } catch {
        return undefined;
      }
    } else if (item !== "") values.push(typed(item));
    rest = rest.slice(part.length).trimStart();
  }
  return values;
}

function looksTyped(text: string): boolean {
  return text === "true" || text === "false" || text === "null" || numberOf(text) !== undefined;
}

function typed(text: string): Scalar {
  if (text === "null") return null;
  if (text === "true" || text === "false") return text === "true";
  return numberOf(text) ?? text;
}

export type Comparison = "is" | "isNot" | "atLeast" | "atMost" | "present";

export interface Condition {
  id: number;
  field: string;
  how: Comparison;
  value: string;
}

/** The filter that all conditions make; nothing where none is complete. */
export function filterOf(conditions: readonly Condition[]): Record<string, unknown> | null {
  const parts = conditions
    .filter(({ field, how, value }) => field.trim() !== "" && (how === "present" || value.trim() !== ""))
    .map(({ field, how, value }) => ({ [field.trim()]: compared(how, value.trim()) }));
  if (parts.length === 0) return null;
  return parts.length === 1 ? (parts[0] ?? null) : { $and: parts };
}

/** Equality in filters is typed, and who types 2024 does not know whether the field holds a number or a text. */
function compared(how: Comparison, text: string): Record<string, unknown> {
  const other = typed(text);
  const either = other === text ? [text] : [text, other];
  switch (how) {
    case "is":
      return { $in: either };
    case "isNot":
      return { $nin: either };
    case "atLeast":
      return { $gte: numberOf(text) ?? text };
    case "atMost":
      return { $lte: numberOf(text) ?? text };
    case "present":
      return { $ne: null };
  }
}
