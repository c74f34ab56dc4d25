/** Does what the queue says: sends files, waits when the server asks for it, follows documents until they are ready.
 * It lives outside of the screen, so that leaving the screen stops nothing. */
import type { Document } from "../api/types";
import type { Found } from "./entries";
import {
  type Choice,
  EMPTY,
  inWork,
  isIdle,
  isUnsent,
  type Queue,
  type QueueEvent,
  reduce,
  toStart,
  type Upload,
} from "./queue";
import { type Refusal, refusalOf } from "./refusals";
import type { Outcome } from "./upload";
import { type Sources, STREAMS, STREAMS_WHILE_SENDING, Watcher } from "./watcher";

export interface Server extends Sources {
  send: (
    upload: Upload,
    file: File,
    how: { onProgress: (loaded: number) => void; signal: AbortSignal },
  ) => Promise<Outcome>;
  /** A document of the same name that was there, in the same collection. */
  sameName: (upload: Upload, file: File, signal: AbortSignal) => Promise<Document | null>;
  retry: (document: string, password: string | null) => Promise<Document>;
}

/** What the page keeps of documents, to be told of changes. */
export interface Watching {
  onDocument: (document: Document) => void;
  onNew: () => void;
}

export class Uploads {
  #queue: Queue = EMPTY;
  #next = 1;
  #release: ReturnType<typeof setTimeout> | null = null;
  readonly #files = new Map<number, File>();
  readonly #aborts = new Map<number, AbortController>();
  readonly #listeners = new Set<() => void>();
  readonly #watcher: Watcher;
  /** Documents made here: another file of the same name in the same folder tree is no question. */
  readonly #made = new Set<string>();

  constructor(
    private readonly server: Server,
    private readonly watching: Watching,
  ) {
    this.#watcher = new Watcher(
      server,
      (document) => {
        watching.onDocument(document);
        this.#dispatch({ is: "changed", document });
      },
      (document) => this.#dispatch({ is: "gone", document }),
    );
  }

  // For useSyncExternalStore, which calls them without their object.
  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
  snapshot = (): Queue => this.#queue;

  add(found: readonly Found[], collectionId: string | null, replaces: string | null = null): void {
    if (isIdle(this.#queue)) this.#made.clear();
    const uploads = found.map(({ file, path }) => {
      const id = this.#next++;
      this.#files.set(id, file);
      return { id, key: newKey(), name: file.name, path, size: file.size, collectionId, replaces };
    });
    this.#dispatch({ is: "added", uploads });
  }

  /** Follows documents that were made otherwise than by sending a file. */
  follow(documents: readonly Document[]): void {
    const uploads = documents.map((document) => {
      const { filename: name, bytes: size, collection_id: collectionId } = document;
      this.#made.add(document.id);
      return {
        upload: { id: this.#next++, key: newKey(), name, path: name, size, collectionId, replaces: null },
        document,
      };
    });
    this.#dispatch({ is: "made", uploads });
    this.watching.onNew();
  }

  choose(id: number, choice: Choice, forAll: boolean): void {
    this.#dispatch({ is: "chosen", id, choice, forAll });
  }

  /** Tries again what failed: the server's reading, or the sending. */
  async retry(id: number, password: string | null = null): Promise<void> {
    const phase = this.#queue.uploads.find((one) => one.id === id)?.phase;
    if (phase?.at !== "failed") return;
    if (phase.document === null) {
      this.#dispatch({ is: "retried", id, key: newKey(), password });
      return;
    }
    try {
      const document = await this.server.retry(phase.document.id, password);
      this.#dispatch({ is: "accepted", id, document });
      this.watching.onDocument(document);
    } catch (error) {
      const { status, words } = refusalOf(error);
      if (status === 404) this.#dispatch({ is: "gone", document: phase.document.id });
      else this.#dispatch({ is: "unretried", id, words });
    }
  }

  remove(id: number): void {
    this.#aborts.get(id)?.abort();
    this.#dispatch({ is: "removed", id });
  }

  clean(): void {
    this.#dispatch({ is: "cleaned" });
  }

  cancel(): void {
    for (const upload of this.#queue.uploads) if (isUnsent(upload)) this.#aborts.get(upload.id)?.abort();
    this.#dispatch({ is: "cancelled" });
  }

  /** Whether closing the page would lose something. */
  hasUnsent(): boolean {
    return this.#queue.uploads.some(isUnsent);
  }

  /** A document was retried or deleted elsewhere on the page. */
  noted(document: Document): void {
    this.#dispatch({ is: "changed", document });
  }

  close(): void {
    for (const abort of this.#aborts.values()) abort.abort();
    this.#dispatch({ is: "cancelled" });
    for (const { id } of this.#queue.uploads) this.#dispatch({ is: "removed", id });
  }

  #dispatch(event: QueueEvent): void {
    const before = this.#queue;
    this.#queue = reduce(before, event);
    if (this.#queue === before) return;
    const kept = new Set(this.#queue.uploads.map(({ id }) => id));
    for (const id of this.#files.keys()) if (!kept.has(id)) this.#files.delete(id);
    this.#goOn();
    for (const listener of this.#listeners) listener();
  }

  #goOn(): void {
    const { held } = this.#queue;
    if (held !== null && this.#release === null) {
      this.#release = setTimeout(
        () => {
          this.#release = null;
          // It may have been put off further meanwhile.
          if ((this.#queue.held?.until ?? 0) > Date.now()) this.#goOn();
          else this.#dispatch({ is: "released" });
        },
        Math.max(0, held.until - Date.now()),
      );
    }
    for (const upload of toStart(this.#queue)) {
      this.#queue = reduce(this.#queue, { is: "begun", id: upload.id });
      void this.#run(upload.id);
    }
    const sending = this.#aborts.size > 1;
    this.#watcher.follow(inWork(this.#queue), sending ? STREAMS_WHILE_SENDING : STREAMS);
  }

  async #run(id: number): Promise<void> {
    const abort = new AbortController();
    this.#aborts.set(id, abort);
    try {
      if (!(await this.#mayBeSent(id, abort.signal))) return;
      const upload = this.#queue.uploads.find((one) => one.id === id);
      const file = this.#files.get(id);
      if (upload?.phase.at !== "sending" || file === undefined) return;
      const onProgress = (loaded: number) => this.#dispatch({ is: "sent", id, loaded });
      const outcome = await this.server.send(upload, file, { onProgress, signal: abort.signal });
      this.#aborts.delete(id);
      this.#finish(id, outcome);
    } catch (error) {
      this.#aborts.delete(id);
      if (!abort.signal.aborted) this.#refuse(id, refusalOf(error));
    } finally {
      if (this.#aborts.get(id) === abort) this.#aborts.delete(id);
    }
  }

  /** Whether the file can go, now that its name was looked up where that was still to do. */
  async #mayBeSent(id: number, signal: AbortSignal): Promise<boolean> {
    const upload = this.#queue.uploads.find((one) => one.id === id);
    const file = this.#files.get(id);
    if (upload?.phase.at !== "checking" || file === undefined) return upload?.phase.at === "sending";
    const existing = await this.server.sameName(upload, file, signal);
    if (existing !== null && !this.#made.has(existing.id)) {
      // Where that is answered already, it goes again at once.
      this.#aborts.delete(id);
      this.#dispatch({ is: "found", id, existing: existing.id });
      return false;
    }
    this.#dispatch({ is: "cleared", id });
    return true;
  }

  #finish(id: number, outcome: Outcome): void {
    switch (outcome.is) {
      case "document":
        this.#made.add(outcome.document.id);
        this.#dispatch({ is: "accepted", id, document: outcome.document });
        this.watching.onNew();
        return;
      case "archive": {
        const { archive } = outcome;
        const ids = [...archive.data, ...archive.skipped].map(() => this.#next++);
        for (const document of archive.data) this.#made.add(document.id);
        this.#dispatch({ is: "unpacked", id, archive, ids });
        this.watching.onNew();
        return;
      }
      case "refused":
        this.#refuse(id, outcome.refusal);
    }
  }

  #refuse(id: number, refusal: Refusal): void {
    this.#dispatch({ is: "refused", id, refusal, now: Date.now() });
  }
}

/** A name for an attempt. `crypto.randomUUID` is only there on https and on the machine itself. */
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
