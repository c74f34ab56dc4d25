import { expect, test } from "vitest";
import { t } from "../strings";
import { sentenceOf } from "./auditSentence";

const ACT = { user_name: "Alice", target: "key_1", target_name: "laptop", target_user_name: "Bob" };

test("an act is a sentence with names", () => {
  expect(sentenceOf({ ...ACT, action: "key.revoked" })).toBe("Alice revoked the key “laptop” of Bob");
  expect(sentenceOf({ ...ACT, action: "limits.set" })).toBe("Alice set limits of “laptop” of Bob");
  const person = { ...ACT, target_name: "Ada Lovelace", target_user_name: null };
  expect(sentenceOf({ ...person, action: "user.removed" })).toBe("Alice removed the user Ada Lovelace");
  expect(sentenceOf({ ...person, action: "invitation.created" })).toBe("Alice invited Ada Lovelace");
});

test("what was deleted is called by its name", () => {
  const file = { ...ACT, target_name: "report.pdf", target_user_name: null };
  expect(sentenceOf({ ...file, action: "document.deleted" })).toBe("Alice deleted the document “report.pdf”");
  expect(sentenceOf({ ...file, action: "file.deleted" })).toBe("Alice deleted the file “report.pdf”");
  expect(sentenceOf({ ...file, action: "document.detached" })).toBe(
    "Alice took the document “report.pdf” out of its collection",
  );
  const group = { ...file, target_name: "contracts" };
  expect(sentenceOf({ ...group, action: "collection.deleted" })).toBe("Alice deleted the collection “contracts”");
});

test("what has no name is called by its id, and an act that is not known by its kind", () => {
  const unnamed = { ...ACT, target_name: null, target_user_name: null };
  expect(sentenceOf({ ...unnamed, action: "key.revoked" })).toBe("Alice revoked the key key_1");
  expect(sentenceOf({ ...unnamed, action: "moon.landed" })).toBe("Alice: moon.landed key_1");
});

test("every act that can be chosen is told", () => {
  expect(Object.keys(t.admin.audit.told).sort()).toEqual(Object.keys(t.admin.audit.actions).sort());
});
