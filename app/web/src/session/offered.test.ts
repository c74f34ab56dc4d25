import { expect, test } from "vitest";
import { isSame, keyIn } from "./offered";

test("a key is read from a link, and from nothing else", () => {
  expect(keyIn("#key=fn_a")).toBe("fn_a");
  expect(keyIn("#key=fn%5Fa%3D%3D")).toBe("fn_a==");
  expect(keyIn("#key=")).toBeNull();
  expect(keyIn("#/documents?key=fn_a")).toBeNull();
  expect(keyIn("#/key=fn_a")).toBeNull();
  expect(keyIn("")).toBeNull();
});

test("a key that is badly encoded is no failure", () => {
  expect(keyIn("#key=%zz")).toBe("%zz");
});

test("two keys are the same only where they can do the same", () => {
  const ada = { tenant_id: "acme", user_id: "ada", role: "admin", collections: null } as const;
  expect(isSame(ada, { ...ada })).toBe(true);
  expect(isSame({ ...ada, collections: ["a", "b"] }, { ...ada, collections: ["b", "a"] })).toBe(true);
  expect(isSame(ada, { ...ada, tenant_id: "globex" })).toBe(false);
  expect(isSame(ada, { ...ada, user_id: "eve" })).toBe(false);
  expect(isSame(ada, { ...ada, role: "reader" })).toBe(false);
  expect(isSame(ada, { ...ada, collections: [] })).toBe(false);
});
