/** How well the language model reads, in words: what a measurement found, or how far it is. */
import type { Model } from "../api/types";
import { t } from "../strings";

const WORDS = t.admin.models.reading;

type Probe = NonNullable<Model["probe"]>;

/** The class of a model, with what was measured; null where nobody need know, for it is set. */
export function readingText({ model_class, source, done, total, reading }: Probe): string | null {
  if (source === "measuring") return WORDS.measuring(done, total);
  if (source === "unknown") return WORDS.unknown;
  if (reading == null) return null;
  return `${WORDS.classes[model_class]} ${WORDS.measured(reading.reads, reading.refuses)}`;
}
