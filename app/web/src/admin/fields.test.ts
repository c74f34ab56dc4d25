import { expect, test } from "vitest";
import { Problem } from "../api/http";
import { refusalOf } from "./fields";

const refused = (detail: string, status = 422) =>
  new Problem(status, "urn:footnote:problem:invalid-request", "", detail, null, null);

test("what is malformed is said beside its field", () => {
  expect(refusalOf(refused("name: String should have at least 1 character; role: no"), ["role", "name"])).toEqual({
    field: "name",
    text: "String should have at least 1 character",
  });
});

test("a part of a field is the field's", () => {
  expect(refusalOf(refused("collections.0: Input should be a valid string"), ["collections"])?.field).toBe(
    "collections",
  );
});

test("the parameter the server names goes before what its sentence begins with", () => {
  const problem = Object.assign(refused("A limit in money is a decimal string."), { param: "limit" });
  expect(refusalOf(problem, ["limit"])).toEqual({ field: "limit", text: "A limit in money is a decimal string." });
});

test("what names no field of the form is about all of it", () => {
  expect(refusalOf(refused("There is no such thing."), ["name"])).toEqual({
    field: null,
    text: "There is no such thing.",
  });
  expect(refusalOf(refused("name: taken", 409), ["name"])).toBeNull();
  expect(refusalOf(new Error("no"), ["name"])).toBeNull();
});
