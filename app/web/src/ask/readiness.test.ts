import { expect, test } from "vitest";
import { Problem } from "../api/http";
import { type Found, isNotReady, waitsFor, whenReady } from "./readiness";

test("a server that loads its models is waited for, and it is said what it loads", () => {
  const checks = { models: { loading: "embedder", done: 1, total: 5 } };

  expect(waitsFor({ ready: false, reasons: ["models: loading"], checks })).toContain("embedder (1 of 5");
  expect(waitsFor({ ready: false, reasons: ["models: loading"], checks: {} })).toBe("its models");
});

test("one that is ready, or has failed, is not waited for", () => {
  expect(waitsFor({ ready: true, reasons: [], checks: {} })).toBeNull();
  expect(waitsFor({ ready: false, reasons: ["models: failed"], checks: {} })).toBeNull();
});

test("only the refusal of a server that is not ready is one to wait for", () => {
  const problem = (status: number, slug: string) =>
    new Problem(status, `urn:footnote:problem:${slug}`, "", "", null, null);

  expect(isNotReady(problem(503, "not-ready"))).toBe(true);
  expect(isNotReady(problem(503, "server-full"))).toBe(false);
  expect(isNotReady(new TypeError())).toBe(false);
});

const LOADING: Found = { state: "loading", what: "its models", seconds: null };

/** Attempts that are refused so many times, looks that find these states in turn, and what came of it. */
async function waited(refusals: number, states: readonly Found[], retryAfter: number | null = 5) {
  const pauses: number[] = [];
  const said: string[] = [];
  const left = [...states];
  let attempts = 0;
  const attempt = async () => {
    attempts += 1;
    if (attempts <= refusals) throw new Problem(503, "urn:footnote:problem:not-ready", "", "", retryAfter, null);
    return "answer";
  };
  const outcome = await whenReady(attempt, {
    onWaiting: (what) => said.push(what),
    signal: new AbortController().signal,
    look: async () => left.shift() ?? { state: "unknown" },
    pause: async (seconds) => {
      pauses.push(seconds);
    },
  }).catch((error: unknown) => error);
  return { outcome, attempts, pauses, said };
}

test("what was refused is asked once more when the server is ready, and never while it loads", async () => {
  const seconds: Found = { ...LOADING, seconds: 7 };
  expect(await waited(1, [LOADING, seconds, { ...LOADING, seconds: 900 }, { state: "ready" }])).toEqual({
    outcome: "answer",
    attempts: 2,
    pauses: [1, 7, 30],
    said: ["its models", "its models", "its models"],
  });
});

test("a server that became ready between the refusal and the look is asked at once", async () => {
  expect(await waited(1, [{ state: "ready" }])).toMatchObject({ outcome: "answer", attempts: 2, pauses: [] });
});

test("behind a proxy that hides its state, pauses grow from the server's own to half a minute", async () => {
  const { outcome, attempts, pauses, said } = await waited(7, []);
  expect([outcome, attempts]).toEqual(["answer", 8]);
  expect(pauses).toEqual([5, 7.5, 11.25, 16.875, 25.3125, 30, 30]);
  expect(new Set(said)).toEqual(new Set(["its models"]));
});

test("a server that is not reached is looked at again, and asked only when it is there", async () => {
  const gone: Found = { state: "unreachable" };
  expect(await waited(1, [gone, gone, LOADING, { state: "ready" }], 2)).toMatchObject({
    outcome: "answer",
    attempts: 2,
  });
});

test("waiting ends: where nothing will come of it at once, and without the server's state some time", async () => {
  const broken = await waited(9, [{ state: "broken" }]);
  expect([broken.attempts, isNotReady(broken.outcome)]).toEqual([1, true]);
  const endless = await waited(1000, []);
  expect([endless.attempts, isNotReady(endless.outcome)]).toEqual([41, true]);
});

test("another failure is not repeated", async () => {
  let attempts = 0;
  const full = new Problem(0, "about:blank", "", "", null, null);
  const attempt = async () => {
    attempts += 1;
    throw full;
  };
  await expect(whenReady(attempt, { onWaiting: () => {}, signal: new AbortController().signal })).rejects.toBe(full);
  expect(attempts).toBe(1);
});
