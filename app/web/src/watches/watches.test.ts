import { expect, test } from "vitest";
import type { Watch } from "../api/types";
import { EVERYTHING } from "../ask/scope";
import { freshOf, isWatched, plainText } from "./watches";

function watch(fields: Partial<Watch>): Watch {
  const none = { collection_ids: null, document_ids: null, filter: null, changed_at: null };
  return { question: "What is the fee?", ...none, ...fields } as Watch;
}

test("a question is watched where it is in the same scope", () => {
  const document = { ...EVERYTHING, documents: [{ id: "doc_1", name: "terms.md" }] };
  const watches = [watch({}), watch({ question: "Who pays?", document_ids: ["doc_1"] })];

  expect(isWatched(watches, "What is the fee?", EVERYTHING)).toBe(true);
  expect(isWatched(watches, "What is the fee?", document)).toBe(false);
  expect(isWatched(watches, "Who pays?", document)).toBe(true);
  expect(isWatched([], "Who pays?", document)).toBe(false);
});

test("what changed since the last look is new, also within the same second", () => {
  const never = watch({ question: "never" });
  const early = watch({ question: "early", changed_at: "2026-11-29T10:00:00.100Z" });
  const late = watch({ question: "late", changed_at: "2026-11-29T10:00:00.200Z" });

  expect(freshOf([never, early, late], null)).toEqual([early, late]);
  expect(freshOf([never, early, late], "2026-11-29T10:00:00.100Z")).toEqual([late]);
  expect(freshOf([never, early, late], "2026-11-29T10:00:00.200Z")).toEqual([]);
});

test("an answer by quotes is shown without the marks of Markdown", () => {
  expect(plainText("**8 euros** [1]\n\n> A ticket costs 8 euros. [1]")).toBe(
    "8 euros [1]\n\nA ticket costs 8 euros. [1]",
  );
});
