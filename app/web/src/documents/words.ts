/** Sizes, times and stages in words. */
import type { Document, DocumentStatus } from "../api/types";
import { t } from "../strings";

const UNITS = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"] as const;

/** A number of bytes, such as `1.2 MB`; a kilobyte is 1000 bytes, as in Intl and on disks' labels. */
export function sizeWords(bytes: number, locale?: string): string {
  let step = 0;
  let amount = bytes;
  // Rounded to what is shown before comparing: 999,999 bytes are 1 MB, not 1,000 kB.
  while (step < UNITS.length - 1 && Math.round(amount) >= 1000) {
    amount /= 1000;
    step += 1;
  }
  const unit = UNITS[step] ?? "byte";
  return new Intl.NumberFormat(locale, {
    style: "unit",
    unit,
    unitDisplay: step === 0 ? "long" : "short",
    maximumFractionDigits: step === 0 || amount >= 10 ? 0 : 1,
  }).format(amount);
}

/** A moment as shortly as it can be told: the time today, the day this year, the date before. */
export function timeWords(moment: string, now: Date = new Date(), locale?: string): string {
  const then = new Date(moment);
  const sameYear = then.getFullYear() === now.getFullYear();
  const sameDay = sameYear && then.getMonth() === now.getMonth() && then.getDate() === now.getDate();
  const how: Intl.DateTimeFormatOptions = sameDay
    ? { hour: "2-digit", minute: "2-digit" }
    : { day: "numeric", month: "short", ...(sameYear ? {} : { year: "numeric" }) };
  return new Intl.DateTimeFormat(locale, how).format(then);
}

/** A moment in full, for where somebody looks closer. */
export function fullTime(moment: string, locale?: string): string {
  return new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" }).format(new Date(moment));
}

export function numberWords(value: number, locale?: string): string {
  return new Intl.NumberFormat(locale).format(value);
}

/** A stage in one word, as in the list. */
export function statusWord(status: DocumentStatus): string {
  return t.documents.statuses[status];
}

/** What happens to a document at the moment, with how far it is. */
export function stageWords(document: Document): string {
  const say = t.documents.uploads;
  const { status, progress, next_attempt_at: next, error } = document;
  if (status === "queued" && next !== null && error !== null) return say.again(timeWords(next), error.detail);
  if (progress !== null && progress.total > 0) {
    if (status === "extracting") return say.extractingPart(progress.done, progress.total);
    if (status === "embedding") return say.embeddingPart(progress.done, progress.total);
  }
  return status === "failed" ? say.failing : say[status];
}

/** The colour a status has in lists. */
export function statusTone(status: DocumentStatus): "good" | "bad" | "warn" | "" {
  if (status === "indexed") return "good";
  if (status === "failed") return "bad";
  return status === "deleting" ? "" : "warn";
}

/** Whether the server still has something to do with it. */
export function isWorking(document: Document): boolean {
  return document.status !== "indexed" && document.status !== "failed";
}

/** A media type in a word: what follows the slash, or the file's own ending where that tells more. */
export function typeWords(document: Document): string {
  const ending = /\.([\p{L}\p{N}]{1,8})$/u.exec(document.filename)?.[1];
  return ending?.toUpperCase() ?? document.media_type ?? "—";
}
