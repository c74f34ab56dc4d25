import { expect, test } from "vitest";
import { expiryOf, stateOf } from "./expiry";

test("a life is so many seconds, a moment, or none said", () => {
  expect(expiryOf({ choice: "never", at: "" })).toEqual({ expires_in: null });
  expect(expiryOf({ choice: "week", at: "" })).toEqual({ expires_in: 604_800 });
  expect(expiryOf({ choice: "keep", at: "" })).toEqual({});
  expect(expiryOf({ choice: "at", at: "2030-01-01T12:00" }).expires_at).toBe(
    new Date("2030-01-01T12:00").toISOString(),
  );
});

test("a revoked key is revoked also when it has expired", () => {
  const now = Date.parse("2025-11-20T00:00:00Z");
  expect(stateOf({ revoked_at: "2025-01-01T00:00:00Z", expires_at: "2025-01-01T00:00:00Z" }, now)).toBe("revoked");
  expect(stateOf({ revoked_at: null, expires_at: "2025-11-20T00:00:00Z" }, now)).toBe("expired");
  expect(stateOf({ revoked_at: null, expires_at: "2025-11-21T00:00:00Z" }, now)).toBe("ending");
  expect(stateOf({ revoked_at: null, expires_at: null }, now)).toBe("working");
});
