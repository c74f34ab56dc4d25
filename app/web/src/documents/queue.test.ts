import { describe, expect, it } from "vitest";
import type { Archive } from "../api/types";
import {
  AT_ONCE,
  EMPTY,
  inWork,
  isIdle,
  type Queue,
  type QueueEvent,
  readyDocuments,
  reduce,
  shown,
  summary,
  toStart,
} from "./queue";
import type { Refusal } from "./refusals";
import { documentOf } from "./testing";

const NOW = 1_000_000;

function refusal(status: number, more: Partial<Refusal> = {}): Refusal {
  return { status, slug: "", code: "", retryAfter: null, words: "No.", because: "Busy.", ...more };
}

function added(count: number, replaces: string | null = null): Queue {
  const uploads = Array.from({ length: count }, (_, place) => ({
    id: place + 1,
    key: `key${place + 1}`,
    name: `${place + 1}.txt`,
    path: `folder/${place + 1}.txt`,
    size: 100,
    collectionId: null,
    replaces,
  }));
  return reduce(EMPTY, { is: "added", uploads });
}

const followed = (queue: Queue, ...events: QueueEvent[]) => events.reduce(reduce, queue);
const phase = (queue: Queue, id: number) => queue.uploads.find((upload) => upload.id === id)?.phase;
const begun = (...ids: number[]): QueueEvent[] => ids.map((id) => ({ is: "begun", id }));
const sending = (...ids: number[]): QueueEvent[] => [
  ...begun(...ids),
  ...ids.map((id): QueueEvent => ({ is: "cleared", id })),
];

describe("the queue", () => {
  it("sends three files at a time, in their order", () => {
    let queue = added(5);
    expect(toStart(queue).map(({ id }) => id)).toEqual([1, 2, 3]);
    queue = followed(queue, ...sending(1, 2, 3));
    expect(toStart(queue)).toEqual([]);
    queue = followed(queue, { is: "accepted", id: 2, document: documentOf("doc_2") });
    expect(toStart(queue).map(({ id }) => id)).toEqual([4]);
    expect(inWork(queue)).toEqual(["doc_2"]);
  });

  it("counts a name being looked up as one of the three, and a question as none", () => {
    const queue = followed(added(5), ...begun(1, 2, 3));
    expect(toStart(queue)).toEqual([]);
    expect(toStart(followed(queue, { is: "found", id: 1, existing: "doc_0" })).map(({ id }) => id)).toEqual([4]);
  });

  it("follows a document to its end", () => {
    let queue = followed(added(1), ...sending(1), { is: "sent", id: 1, loaded: 40 });
    expect(phase(queue, 1)).toEqual({ at: "sending", loaded: 40 });
    queue = followed(queue, { is: "accepted", id: 1, document: documentOf("doc_1") });
    queue = followed(queue, { is: "changed", document: documentOf("doc_1", { status: "embedding" }) });
    expect(phase(queue, 1)).toMatchObject({ at: "working", document: { status: "embedding" } });
    queue = followed(queue, { is: "changed", document: documentOf("doc_1", { status: "indexed" }) });
    expect(phase(queue, 1)).toMatchObject({ at: "done", how: "ready" });
    expect(isIdle(queue)).toBe(true);
    expect(followed(queue, { is: "cleaned" })).toEqual(EMPTY);
  });

  it("remembers that it was a duplicate, though only the first answer said so", () => {
    const first = documentOf("doc_1", { duplicate_of: "doc_1", status: "embedding" });
    const queue = followed(added(1), ...sending(1), { is: "accepted", id: 1, document: first });
    const last = followed(queue, { is: "changed", document: documentOf("doc_1", { status: "indexed" }) });
    expect(phase(last, 1)).toMatchObject({ at: "done", how: "duplicate" });
  });

  it("can be retried where the server could not read it, and remembers the document", () => {
    const error = { code: "encrypted", detail: "It is protected." };
    let queue = followed(added(1), ...sending(1), { is: "accepted", id: 1, document: documentOf("doc_1") });
    queue = followed(queue, { is: "changed", document: documentOf("doc_1", { status: "failed", error }) });
    expect(phase(queue, 1)).toMatchObject({ at: "failed", code: "encrypted", document: { id: "doc_1" }, retry: true });
    queue = followed(queue, { is: "unretried", id: 1, words: "The server is busy." });
    expect(phase(queue, 1)).toMatchObject({ at: "failed", words: "The server is busy.", document: { id: "doc_1" } });
    queue = followed(queue, { is: "accepted", id: 1, document: documentOf("doc_1") });
    expect(inWork(queue)).toEqual(["doc_1"]);
    expect(phase(followed(queue, { is: "gone", document: "doc_1" }), 1)).toMatchObject({ at: "done", how: "gone" });
  });

  it("ignores answers about what is not there any more", () => {
    const queue = followed(added(2), ...sending(1), { is: "removed", id: 1 });
    const late = followed(
      queue,
      { is: "sent", id: 1, loaded: 50 },
      { is: "accepted", id: 1, document: documentOf("doc_1") },
      { is: "refused", id: 1, refusal: refusal(503), now: NOW },
    );
    expect(late.uploads).toEqual(queue.uploads);
    expect(late.held).toBeNull();
  });

  it("forgets what was not sent when it is cancelled, and keeps the rest", () => {
    const queue = followed(added(4), ...sending(1, 2), { is: "accepted", id: 1, document: documentOf("doc_1") });
    expect(followed(queue, { is: "cancelled" }).uploads.map(({ id }) => id)).toEqual([1]);
  });
});

describe("when the server refuses", () => {
  const one = followed(added(3), ...sending(1, 2));

  it("waits as long as it says, with all files, and goes on with the same one", () => {
    const queue = followed(one, { is: "refused", id: 1, refusal: refusal(429, { retryAfter: 7 }), now: NOW });
    expect(queue.held).toEqual({ until: NOW + 7000, because: "Busy." });
    expect(phase(queue, 1)).toEqual({ at: "waiting" });
    expect(toStart(queue)).toEqual([]);
    expect(toStart(followed(queue, { is: "released" })).map(({ id }) => id)).toEqual([1, 3]);
  });

  it("waits for the later of two moments", () => {
    const queue = followed(
      one,
      { is: "refused", id: 1, refusal: refusal(507), now: NOW },
      { is: "refused", id: 2, refusal: refusal(503, { retryAfter: 1 }), now: NOW },
    );
    expect(queue.held?.until).toBe(NOW + 30_000);
  });

  it("does not look the name up again for a file that was refused", () => {
    const queue = followed(one, { is: "refused", id: 1, refusal: refusal(503), now: NOW }, { is: "released" });
    expect(phase(followed(queue, ...begun(1)), 1)).toEqual({ at: "sending", loaded: 0 });
  });

  it("does not wait for a budget's next month", () => {
    const month = refusal(429, { slug: "budget-exceeded", retryAfter: 86_400 });
    const queue = followed(one, { is: "refused", id: 1, refusal: month, now: NOW });
    expect(queue.held).toBeNull();
    expect(phase(queue, 1)).toMatchObject({ at: "failed", retry: true });
  });

  it("says what is wrong with the file itself, and offers to try again only with what it lacked", () => {
    const wrong = followed(one, { is: "refused", id: 1, refusal: refusal(415, { words: "An image." }), now: NOW });
    expect(phase(wrong, 1)).toMatchObject({ at: "failed", words: "An image.", retry: false });
    const locked = followed(one, { is: "refused", id: 1, refusal: refusal(422, { code: "encrypted" }), now: NOW });
    expect(phase(locked, 1)).toMatchObject({ at: "failed", code: "encrypted", retry: true });
    const again = followed(locked, { is: "retried", id: 1, key: "other", password: "secret" });
    expect(again.uploads[0]).toMatchObject({ key: "other", password: "secret", phase: { at: "waiting" } });
  });

  it("tries a lost connection a few times, but never what would make two versions", () => {
    let queue = one;
    for (let tries = 0; tries < 4; tries += 1) {
      queue = followed(queue, { is: "refused", id: 1, refusal: refusal(0), now: NOW });
      expect(phase(queue, 1)?.at).toBe("waiting");
      queue = followed(queue, { is: "released" }, ...begun(1));
    }
    queue = followed(queue, { is: "refused", id: 1, refusal: refusal(0), now: NOW });
    expect(phase(queue, 1)).toMatchObject({ at: "failed", retry: true });

    const version = followed(added(1, "doc_9"), ...begun(1), { is: "refused", id: 1, refusal: refusal(0), now: NOW });
    expect(phase(version, 1)).toMatchObject({ at: "failed", retry: true });
  });
});

describe("a name that is there already", () => {
  const asking = followed(added(3), ...begun(1, 2), { is: "found", id: 1, existing: "doc_0" });

  it("becomes a new version, another document, or nothing", () => {
    expect(phase(asking, 1)).toEqual({ at: "asking", existing: "doc_0" });
    expect(summary(asking)).toMatchObject({ asking: 1, unsent: 3 });
    const chosen = (choice: "version" | "both" | "skip") =>
      followed(asking, { is: "chosen", id: 1, choice, forAll: false });
    expect(chosen("version").uploads[0]).toMatchObject({ replaces: "doc_0", checked: true, phase: { at: "waiting" } });
    expect(chosen("both").uploads[0]).toMatchObject({ replaces: null, checked: true, phase: { at: "waiting" } });
    expect(phase(chosen("skip"), 1)).toMatchObject({ at: "done", how: "skipped" });
  });

  it("is asked about once for all, until all is done", () => {
    let queue = followed(asking, { is: "chosen", id: 1, choice: "skip", forAll: true });
    queue = followed(queue, { is: "found", id: 2, existing: "doc_5" });
    expect(phase(queue, 2)).toMatchObject({ at: "done", how: "skipped" });
    queue = followed(queue, ...sending(3), {
      is: "accepted",
      id: 3,
      document: documentOf("doc_3", { status: "indexed" }),
    });
    queue = followed(queue, {
      is: "added",
      uploads: [{ id: 4, key: "", name: "4", path: "4", size: 1, collectionId: null, replaces: null }],
    });
    queue = followed(queue, ...begun(4), { is: "found", id: 4, existing: "doc_0" });
    expect(phase(queue, 4)?.at).toBe("asking");
  });
});

describe("an archive", () => {
  it("becomes a row for each document in it, and one for each file left out", () => {
    const archive: Archive = {
      object: "list",
      data: [{ ...documentOf("doc_1"), archive_path: "2025/a.txt" }],
      skipped: [{ name: "logo.png", code: "unsupported-format", detail: "This looks like an image." }],
    };
    const queue = followed(added(1), ...sending(1), { is: "unpacked", id: 1, archive, ids: [7, 8] });
    expect(queue.uploads.map(({ id, path, phase: { at } }) => [id, path, at])).toEqual([
      [1, "folder/1.txt", "unpacked"],
      [7, "folder/1.txt/2025/a.txt", "working"],
      [8, "folder/1.txt/logo.png", "failed"],
    ]);
    expect(phase(queue, 8)).toMatchObject({ words: "This looks like an image.", retry: false });
  });
});

it("shows of very many files those first that need somebody", () => {
  let queue = followed(added(40), ...sending(1, 2, 3));
  expect(shown(added(3), 30)).toHaveLength(3);
  queue = followed(
    queue,
    { is: "accepted", id: 1, document: documentOf("doc_1", { status: "indexed" }) },
    { is: "refused", id: 2, refusal: refusal(415), now: NOW },
    ...begun(20),
    { is: "found", id: 20, existing: "doc_0" },
  );
  const rows = shown(queue, 30);
  expect(rows.slice(0, AT_ONCE).map(({ id }) => id)).toEqual([20, 2, 3]);
  expect(rows).toHaveLength(30);
  expect(rows.some(({ id }) => id === 1)).toBe(false);
});

it("shows what was added last on top, and files that came together in their order", () => {
  const later = ["a.txt", "b.txt"].map((name, place) => ({
    ...{ id: 10 + place, key: name, name, path: name, size: 1, collectionId: null, replaces: null },
  }));
  const queue = followed(
    added(2),
    { is: "added", uploads: later },
    ...sending(1, 10),
    { is: "accepted", id: 1, document: documentOf("doc_1", { status: "indexed" }) },
    { is: "accepted", id: 10, document: documentOf("doc_10", { status: "indexed" }) },
  );
  expect(shown(queue, 30).map(({ id }) => id)).toEqual([10, 11, 1, 2]);
  expect(readyDocuments(queue).map(({ id }) => id)).toEqual(["doc_10", "doc_1"]);
  expect(toStart(queue).map(({ id }) => id)).toEqual([2, 11]);
});
