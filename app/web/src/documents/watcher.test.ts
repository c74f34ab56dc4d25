import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Document } from "../api/types";
import { documentOf } from "./testing";
import { Watcher } from "./watcher";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A server with documents by id; streams stay open until they are told to end. */
function serverOf(ids: readonly string[]) {
  const asked = { lists: 0, reads: [] as string[] };
  const open = new Map<string, (document: Document | null) => void>();
  const sources = {
    list: async (limit: number) => {
      asked.lists += 1;
      return ids.slice(-limit).map((id) => documentOf(id, { status: "embedding" }));
    },
    read: async (id: string) => {
      asked.reads.push(id);
      return id === "doc_gone" ? null : documentOf(id, { status: "indexed" });
    },
    async *stream(id: string, signal: AbortSignal) {
      for (;;) {
        const next = await new Promise<Document | null>((resolve) => {
          open.set(id, resolve);
          signal.addEventListener("abort", () => resolve(null));
        });
        open.delete(id);
        if (next === null) return;
        yield next;
      }
    },
  };
  return { sources, asked, open };
}

function watching(ids: readonly string[]) {
  const server = serverOf(ids);
  const changes: Document[] = [];
  const gone: string[] = [];
  const watcher = new Watcher(
    server.sources,
    (document) => void changes.push(document),
    (id) => void gone.push(id),
  );
  return { watcher, changes, gone, ...server };
}

it("opens a few streams for many documents and asks for the others in one list", async () => {
  const ids = Array.from({ length: 300 }, (_, place) => `doc_${place}`);
  const { watcher, open, asked, changes } = watching(ids);
  watcher.follow(ids, 2);
  await vi.advanceTimersByTimeAsync(0);
  expect([...open.keys()]).toEqual(["doc_0", "doc_1"]);
  await vi.advanceTimersByTimeAsync(5000);
  expect(asked).toEqual({ lists: 1, reads: [] });
  expect(new Set(changes.map(({ id }) => id))).toEqual(new Set(ids.slice(2)));
  watcher.close();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked.lists).toBe(1);
  expect(open.size).toBe(0);
});

it("gives the place of a finished stream to the next document", async () => {
  const { watcher, open, changes } = watching([]);
  watcher.follow(["doc_1", "doc_2", "doc_3"], 2);
  await vi.advanceTimersByTimeAsync(0);
  open.get("doc_1")?.(documentOf("doc_1", { status: "indexed" }));
  await vi.advanceTimersByTimeAsync(0);
  expect(changes.map(({ status }) => status)).toEqual(["indexed"]);
  watcher.follow(["doc_2", "doc_3"], 2); // as the queue does when it hears of it
  open.get("doc_1")?.(null);
  await vi.advanceTimersByTimeAsync(0);
  expect([...open.keys()].toSorted()).toEqual(["doc_2", "doc_3"]);
  watcher.close();
});

it("asks for documents far down the list a few at a time, in turn, and says which are gone", async () => {
  const { watcher, asked, gone } = watching([]);
  watcher.follow(["doc_a", "doc_b", "doc_c", "doc_d", "doc_e", "doc_gone"], 0);
  await vi.advanceTimersByTimeAsync(2000);
  expect(asked.reads).toEqual(["doc_a", "doc_b", "doc_c", "doc_d"]);
  await vi.advanceTimersByTimeAsync(2000);
  expect(asked.reads.slice(4)).toEqual(["doc_e", "doc_gone", "doc_a", "doc_b"]);
  expect(gone).toEqual(["doc_gone"]);
  watcher.close();
});

it("comes back after a while when the list fails", async () => {
  const { watcher, sources, asked } = watching([]);
  const list = vi.spyOn(sources, "list").mockRejectedValueOnce(new Error("lost"));
  watcher.follow(["doc_a"], 0);
  await vi.advanceTimersByTimeAsync(2000);
  expect(list).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(9000);
  expect(list).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(1000);
  expect(list).toHaveBeenCalledTimes(2);
  expect(asked.reads).toEqual(["doc_a"]);
  watcher.close();
});
