/** Follows documents while the server works on them: the first few by their events, all others by one list. */
import type { Document } from "../api/types";

/** Server-sent events hold a connection each, of which browsers have six. */
export const STREAMS = 2;
export const STREAMS_WHILE_SENDING = 1;

const EVERY = 2000;
const EVERY_OF_MANY = 5000;
const AFTER_FAILURE = 10_000;
const MANY = 100;
const LARGEST_PAGE = 500;
const SINGLES = 4;

/** What the watcher asks the server. */
export interface Sources {
  /** The newest documents. */
  list: (limit: number, signal: AbortSignal) => Promise<readonly Document[]>;
  /** One document; `null` when it is gone. */
  read: (id: string, signal: AbortSignal) => Promise<Document | null>;
  /** A document's states until it is finished. */
  stream: (id: string, signal: AbortSignal) => AsyncIterable<Document>;
}

export class Watcher {
  #followed: readonly string[] = [];
  #most = 0;
  readonly #streams = new Map<string, AbortController>();
  /** Those whose stream broke off: the list has them. */
  readonly #unstreamed = new Set<string>();
  #timer: ReturnType<typeof setTimeout> | null = null;
  #polling: AbortController | null = null;
  #next = 0;

  constructor(
    private readonly sources: Sources,
    private readonly onChange: (document: Document) => void,
    private readonly onGone: (id: string) => void,
  ) {}

  /** Follow these and no others, `streams` of them by events. */
  follow(ids: readonly string[], streams: number): void {
    this.#followed = [...new Set(ids)];
    this.#most = streams;
    const wanted = new Set(this.#followed);
    for (const [id, stream] of this.#streams) if (!wanted.has(id)) stream.abort();
    for (const id of this.#unstreamed) if (!wanted.has(id)) this.#unstreamed.delete(id);
    for (const id of this.#followed) {
      if (this.#streams.size >= streams) break;
      if (!this.#streams.has(id) && !this.#unstreamed.has(id)) void this.#stream(id);
    }
    if (this.#rest().length > 0) this.#schedule(this.#followed.length > MANY ? EVERY_OF_MANY : EVERY);
    else this.#stopPolling();
  }

  close(): void {
    this.follow([], 0);
    this.#unstreamed.clear();
  }

  #rest(): string[] {
    return this.#followed.filter((id) => !this.#streams.has(id));
  }

  async #stream(id: string): Promise<void> {
    const stream = new AbortController();
    this.#streams.set(id, stream);
    try {
      for await (const document of this.sources.stream(id, stream.signal)) {
        if (stream.signal.aborted) return;
        this.onChange(document);
      }
    } catch {
      // The list goes on where the stream broke off.
    } finally {
      this.#streams.delete(id);
      this.#unstreamed.add(id);
      this.follow(this.#followed, this.#most);
    }
  }

  #schedule(after: number): void {
    if (this.#timer !== null || this.#polling !== null) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      void this.#poll();
    }, after);
  }

  #stopPolling(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#polling?.abort();
    this.#polling = null;
  }

  async #poll(): Promise<void> {
    const polling = new AbortController();
    this.#polling = polling;
    let after = this.#followed.length > MANY ? EVERY_OF_MANY : EVERY;
    try {
      const rest = new Set(this.#rest());
      // What was sent last is listed first; a few more, for what others add meanwhile.
      const listed = await this.sources.list(Math.min(LARGEST_PAGE, this.#followed.length + 20), polling.signal);
      for (const document of listed) if (rest.delete(document.id)) this.onChange(document);
      await this.#readSingly([...rest], polling.signal);
    } catch {
      after = AFTER_FAILURE;
    } finally {
      if (this.#polling === polling) {
        this.#polling = null;
        if (this.#rest().length > 0) this.#schedule(after);
      }
    }
  }

  /** New versions of old documents are far down the list: a few at a time, in turn. */
  async #readSingly(ids: readonly string[], signal: AbortSignal): Promise<void> {
    const from = ids.length > SINGLES ? this.#next % ids.length : 0;
    this.#next = from + SINGLES;
    for (const id of [...ids.slice(from), ...ids.slice(0, from)].slice(0, SINGLES)) {
      const document = await this.sources.read(id, signal);
      if (document === null) this.onGone(id);
      else this.onChange(document);
    }
  }
}
