import { expect, test } from "vitest";
import type { Model } from "../api/types";
import { readingText } from "./modelReading";

type Probe = NonNullable<Model["probe"]>;

const UNKNOWN: Probe = {
  model_class: "quotes",
  source: "unknown",
  done: 0,
  total: 40,
  measured_at: null,
  reading: null,
};

function share(count: number, of: number) {
  return { count, of };
}

const MEASURED: Probe = {
  ...UNKNOWN,
  model_class: "writer",
  source: "measured",
  measured_at: 7,
  reading: {
    reads: share(14, 20),
    joins: share(4, 8),
    forms: share(1, 4),
    refuses: share(4, 28),
    declines: share(2, 8),
  },
};

test("while it is measured, one sees how far that is", () => {
  expect(readingText({ ...UNKNOWN, source: "measuring", done: 12 })).toBe(
    "being measured: 12 of 40 questions; quotes answer until then",
  );
});

test("what was measured stands behind the class", () => {
  expect(readingText(MEASURED)).toBe(
    "well enough for a sentence or two where quotes are unsure: 14 of 20 questions right, 4 of 28 refused although the text answers them",
  );
  expect(readingText({ ...MEASURED, model_class: "quotes" })).toMatch(/^not well enough, so quotes answer: /);
});

test("a class that is set is not explained, but what was measured of it is", () => {
  expect(readingText({ ...UNKNOWN, source: "set" })).toBeNull();
  expect(readingText({ ...MEASURED, source: "set" })).toMatch(/14 of 20/);
});

test("nobody has measured it yet", () => {
  expect(readingText(UNKNOWN)).toBe("not known yet, so quotes answer");
});
