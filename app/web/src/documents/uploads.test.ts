import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Document } from "../api/types";
import type { Refusal } from "./refusals";
import { documentOf } from "./testing";
import type { Outcome } from "./upload";
import { type Server, Uploads } from "./uploads";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

interface Sent {
  name: string;
  replaces: string | null;
  key: string;
  password: string | null;
  signal: AbortSignal;
  answer: (outcome: Outcome) => void;
}

function made(sameName: (name: string) => Document | null = () => null) {
  const sent: Sent[] = [];
  const documents = new Map<string, Document>();
  const server: Server = {
    list: async () => [...documents.values()],
    read: async (id) => documents.get(id) ?? null,
    // biome-ignore lint/correctness/useYield: it breaks off before the first event
    async *stream() {
      throw new Error("no streams here");
    },
    sameName: async ({ name }) => sameName(name),
    retry: async (id) => documentOf(id),
    send: ({ name, replaces, key, password }, _, { signal }) =>
      new Promise((answer, reject) => {
        signal.addEventListener("abort", () => reject(new DOMException("aborted", "AbortError")));
        sent.push({ name, replaces, key, password, signal, answer });
      }),
  };
  const noted: Document[] = [];
  const uploads = new Uploads(server, { onDocument: (document) => void noted.push(document), onNew: () => undefined });
  return { uploads, sent, documents, noted };
}

const filesOf = (...names: string[]) => names.map((name) => ({ file: new File(["x"], name), path: name }));
const settle = () => vi.advanceTimersByTimeAsync(0);
const accepted = (id: string): Outcome => ({ is: "document", document: documentOf(id) });
const refused = (more: Partial<Refusal>): Outcome => ({
  is: "refused",
  refusal: { status: 429, slug: "", code: "", retryAfter: 7, words: "No.", because: "Busy.", ...more },
});
const phases = (uploads: Uploads) => uploads.snapshot().uploads.map(({ phase }) => phase.at);

it("sends three files at a time, and the next when one has arrived", async () => {
  const { uploads, sent } = made();
  uploads.add(filesOf("a", "b", "c", "d", "e"), null);
  await settle();
  expect(sent.map(({ name }) => name)).toEqual(["a", "b", "c"]);
  sent[1]?.answer(accepted("doc_b"));
  await settle();
  expect(sent.map(({ name }) => name)).toEqual(["a", "b", "c", "d"]);
  expect(phases(uploads)).toEqual(["sending", "working", "sending", "sending", "waiting"]);
  uploads.close();
});

it("follows what arrived until it is ready", async () => {
  const { uploads, sent, documents, noted } = made();
  uploads.add(filesOf("a"), null);
  await settle();
  sent[0]?.answer(accepted("doc_a"));
  documents.set("doc_a", documentOf("doc_a", { status: "indexed" }));
  await vi.advanceTimersByTimeAsync(2000);
  expect(phases(uploads)).toEqual(["done"]);
  expect(noted.map(({ status }) => status)).toEqual(["indexed"]);
  uploads.close();
});

it("waits when it is told to, sends nothing meanwhile, and goes on by itself under the same key", async () => {
  const { uploads, sent } = made();
  uploads.add(filesOf("a", "b", "c", "d"), null);
  await settle();
  sent[0]?.answer(refused({}));
  sent[1]?.answer(accepted("doc_b"));
  await vi.advanceTimersByTimeAsync(6900);
  expect(sent).toHaveLength(3);
  await vi.advanceTimersByTimeAsync(200);
  expect(sent.slice(3).map(({ name }) => name)).toEqual(["a", "d"]);
  expect(sent[3]?.key).toBe(sent[0]?.key);
  expect(uploads.snapshot().held).toBeNull();
  uploads.close();
});

it("breaks off what is removed or cancelled, and begins others in its place", async () => {
  const { uploads, sent } = made();
  uploads.add(filesOf("a", "b", "c", "d", "e"), null);
  await settle();
  uploads.remove(uploads.snapshot().uploads[0]?.id ?? -1);
  await settle();
  expect(sent[0]?.signal.aborted).toBe(true);
  expect(sent.map(({ name }) => name)).toEqual(["a", "b", "c", "d"]);
  expect(uploads.hasUnsent()).toBe(true);
  uploads.cancel();
  await settle();
  expect(sent.every(({ signal }) => signal.aborted)).toBe(true);
  expect(uploads.snapshot().uploads).toEqual([]);
  expect(uploads.hasUnsent()).toBe(false);
});

it("asks about a name that was there before, not about one that it made itself", async () => {
  const { uploads, sent } = made((name) => (name === "fresh" ? documentOf("doc_made") : documentOf("doc_old")));
  uploads.add(filesOf("old"), null);
  await settle();
  expect(phases(uploads)).toEqual(["asking"]);
  uploads.choose(uploads.snapshot().uploads[0]?.id ?? -1, "version", false);
  await settle();
  expect(sent.map(({ replaces }) => replaces)).toEqual(["doc_old"]);
  sent[0]?.answer(accepted("doc_made"));
  await settle();
  uploads.add(filesOf("fresh"), null);
  await settle();
  expect(sent.map(({ name, replaces }) => [name, replaces])).toEqual([
    ["old", "doc_old"],
    ["fresh", null],
  ]);
  uploads.close();
});

it("answers for all that are asked about, those under way too", async () => {
  const { uploads, sent } = made(() => documentOf("doc_old"));
  uploads.add(filesOf("a", "b", "c", "d", "e"), null);
  await settle();
  expect(new Set(phases(uploads))).toEqual(new Set(["asking"]));
  uploads.choose(1, "both", true);
  await settle();
  expect(sent).toHaveLength(3);
  uploads.close();
});

it("tries again under another key, with the password that was missing", async () => {
  const { uploads, sent } = made();
  uploads.add(filesOf("a"), null);
  await settle();
  sent[0]?.answer(refused({ status: 422, code: "encrypted", retryAfter: null }));
  await settle();
  expect(phases(uploads)).toEqual(["failed"]);
  await uploads.retry(1, "secret");
  await settle();
  expect(sent[1]?.password).toBe("secret");
  expect(sent[1]?.key).not.toBe(sent[0]?.key);
  sent[1]?.answer(accepted("doc_a"));
  await settle();
  expect(uploads.snapshot().uploads[0]?.password).toBeNull();
  uploads.close();
});

it("has the server read again what arrived but could not be read", async () => {
  const { uploads, sent } = made();
  uploads.add(filesOf("a"), null);
  await settle();
  const error = { code: "no-text", detail: "There is no text in it." };
  sent[0]?.answer({ is: "document", document: documentOf("doc_a", { status: "failed", error }) });
  await settle();
  await uploads.retry(1);
  expect(sent).toHaveLength(1);
  expect(phases(uploads)).toEqual(["working"]);
  uploads.close();
});

it("follows what was made otherwise, sends nothing for it, and asks nobody about its name", async () => {
  const { uploads, sent, documents, noted } = made(() => documentOf("doc_before"));
  uploads.follow([documentOf("doc_a"), documentOf("doc_b", { status: "indexed" })]);
  await settle();
  expect(sent).toEqual([]);
  expect(phases(uploads)).toEqual(["working", "done"]);
  expect(uploads.hasUnsent()).toBe(false);

  documents.set("doc_a", documentOf("doc_a", { status: "indexed" }));
  await vi.advanceTimersByTimeAsync(60_000);
  expect(phases(uploads)).toEqual(["done", "done"]);
  expect(noted.map(({ id }) => id)).toContain("doc_a");
});
