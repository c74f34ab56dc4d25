import { expect, test } from "vitest";
import { Problem } from "../api/http";
import { isNotReady, waitsFor } from "./readiness";

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
