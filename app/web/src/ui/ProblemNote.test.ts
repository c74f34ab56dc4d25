import { expect, test } from "vitest";
import { Problem } from "../api/http";
import { againIn } from "./numbers";
import { wordsOf } from "./ProblemNote";
import { refusedBudget } from "./refusedBudget";

function problem(detail: string, retryAfter: number | null, slug = "not-ready", members = {}): Problem {
  return new Problem(429, `urn:footnote:problem:${slug}`, "Too Many", detail, retryAfter, null, null, members);
}

test("when to try again is said once", () => {
  expect(wordsOf(problem("The models are being loaded; try again in a few seconds.", 5))).toBe(
    "The models are being loaded. Try again in 5 seconds.",
  );
  expect(wordsOf(problem("The server is busy. Try again in a moment.", 90))).toBe(
    "The server is busy. Try again in 90 seconds.",
  );
  expect(wordsOf(problem("It is full.", 3))).toBe("It is full. Try again in 3 seconds.");
  expect(wordsOf(problem("Try again with another file. It is broken.", 3))).toBe(
    "Try again with another file. It is broken. Try again in 3 seconds.",
  );
  expect(wordsOf(problem("Try again in a moment.", null))).toBe("Try again in a moment.");
});

test("how long to wait is said in a unit that people wait in", () => {
  expect([1, 119, 120, 7199, 7200, 172_800].map((seconds) => againIn(seconds, "en"))).toEqual([
    "1 second",
    "119 seconds",
    "2 minutes",
    "120 minutes",
    "2 hours",
    "2 days",
  ]);
});

const BUDGET = { budget_id: "budget_1", unit: "tokens", limit: 100, used: 60, reserved: 30, reset_at: 1_800_000_000 };

test("a refusal by a budget tells what it counts", () => {
  const refused = problem("A budget has no room for this request.", 50_000, "budget-exceeded", BUDGET);
  expect(refused.slug).toBe("budget-exceeded");
  expect(refusedBudget(refused)).toEqual({
    id: "budget_1",
    said: "A budget has no room for this request.",
    unit: "tokens",
    limit: 100,
    used: 60,
    reserved: 30,
    resetAt: 1_800_000_000,
  });
  expect(wordsOf(refused)).toMatch(/^A budget has no room for this request\. It begins again .+2027.+\. Ask an admin/);
  expect(refusedBudget(problem("", null, "budget-exceeded", { ...BUDGET, unit: "cost" }))).toBeNull();
  expect(refusedBudget(problem("", null, "rate-limited", BUDGET))).toBeNull();
});
