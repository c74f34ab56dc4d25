import { expect, it } from "vitest";
import { Deletions } from "./deletions";
import { documentOf } from "./testing";

function made(fails: (id: string) => boolean = () => false) {
  const removed: [string, boolean][] = [];
  const gone: string[] = [];
  const failed: string[] = [];
  const deletions = new Deletions(
    async (id, last) => {
      if (fails(id)) throw new Error("no");
      removed.push([id, last]);
    },
    async (documents) => void gone.push(...documents.map(({ id }) => id)),
    ({ id }) => void failed.push(id),
  );
  return { deletions, removed, gone, failed };
}

const documents = ["doc_1", "doc_2"].map((id) => documentOf(id));

it("hides at once, deletes when the time is over, and only once", async () => {
  const { deletions, removed, gone } = made();
  const deletion = deletions.begin(documents);
  expect([...deletions.snapshot()]).toEqual(["doc_1", "doc_2"]);
  expect(removed).toEqual([]);
  await Promise.all([deletions.finish(deletion), deletions.finish(deletion), deletions.flush()]);
  expect(removed).toEqual([
    ["doc_1", false],
    ["doc_2", false],
  ]);
  expect(gone).toEqual(["doc_1", "doc_2"]);
  expect(deletions.snapshot().size).toBe(0);
});

it("shows again what was undone, and leaves it there", async () => {
  const { deletions, removed } = made();
  const deletion = deletions.begin(documents);
  deletions.undo(deletion);
  expect(deletions.snapshot().size).toBe(0);
  await deletions.finish(deletion);
  await deletions.flush();
  expect(removed).toEqual([]);
});

it("asks for everything at once when the page is left", async () => {
  const { deletions, removed } = made();
  deletions.begin(documents);
  deletions.begin([documentOf("doc_3")]);
  await deletions.flush();
  expect(removed).toEqual([
    ["doc_1", true],
    ["doc_2", true],
    ["doc_3", true],
  ]);
});

it("shows again what could not be deleted, and says so", async () => {
  const { deletions, gone, failed } = made((id) => id === "doc_1");
  await deletions.finish(deletions.begin(documents));
  expect(failed).toEqual(["doc_1"]);
  expect(gone).toEqual(["doc_2"]);
  expect(deletions.snapshot().size).toBe(0);
});
