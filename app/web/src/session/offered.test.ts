import { expect, test } from "vitest";
import { isSame, keyIn, placeBeside } from "./offered";

test("a key is read from a link, and from nothing else", () => {
  expect(keyIn("#key=fn_a")).toBe("fn_a");
  expect(keyIn("#key=fn%5Fa%3D%3D")).toBe("fn_a==");
  expect(keyIn("#key=")).toBeNull();
  expect(keyIn("#/documents?monkey=fn_a")).toBeNull();
  expect(keyIn("#/documents/key=fn_a")).toBeNull();
  expect(keyIn("#/documents")).toBeNull();
  expect(keyIn("")).toBeNull();
});

test("a key beside a place of the page is read too, and the place stays", () => {
  for (const link of ["#/key=fn_a", "#/?key=fn_a", "#?key=fn_a"]) {
    expect([keyIn(link), placeBeside(link)]).toEqual(["fn_a", ""]);
  }
  for (const [link, place] of [
    ["#/usage?key=fn%5Fa", "#/usage"],
    ["#/documents/doc_1?page=4&key=fn_a", "#/documents/doc_1?page=4"],
    ["#/documents/doc_1?key=fn_a&page=4", "#/documents/doc_1?page=4"],
    ["#/documents/doc_1?version=2&key=fn_a&page=4", "#/documents/doc_1?version=2&page=4"],
  ] as const) {
    expect([keyIn(link), placeBeside(link)]).toEqual(["fn_a", place]);
  }
  expect(placeBeside("#key=fn_a")).toBe("");
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
