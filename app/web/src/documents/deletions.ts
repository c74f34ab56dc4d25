/** Documents that are going: out of sight at once, deleted when the time for changing one's mind is over. */
import type { Document } from "../api/types";

export interface Deletion {
  documents: readonly Document[];
}

const AT_ONCE = 3;

export class Deletions {
  readonly #pending = new Set<Deletion>();
  readonly #listeners = new Set<() => void>();
  #hidden: ReadonlySet<string> = new Set();

  /**
   * @param remove Deletes a document; with `last` the page is being left, and the request has to outlive it.
   * @param onGone Told of those that are deleted for good.
   * @param onFailed Told of those that could not be, and are shown again.
   */
  constructor(
    private readonly remove: (id: string, last: boolean) => Promise<void>,
    private readonly onGone: (documents: readonly Document[]) => Promise<void>,
    private readonly onFailed: (document: Document, error: unknown) => void,
  ) {}

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
  /** The documents that are not shown. */
  snapshot = (): ReadonlySet<string> => this.#hidden;

  begin(documents: readonly Document[]): Deletion {
    const deletion = { documents };
    this.#pending.add(deletion);
    this.#hide(documents);
    return deletion;
  }

  undo(deletion: Deletion): void {
    if (this.#pending.delete(deletion)) this.#show(deletion.documents);
  }

  /** Delete for good what was not undone. */
  async finish(deletion: Deletion, last = false): Promise<void> {
    if (!this.#pending.delete(deletion)) return;
    const waiting = [...deletion.documents];
    const gone: Document[] = [];
    const one = async () => {
      for (let document = waiting.shift(); document !== undefined; document = waiting.shift()) {
        try {
          await this.remove(document.id, last);
          gone.push(document);
        } catch (error) {
          this.#show([document]);
          this.onFailed(document, error);
        }
      }
    };
    // Who leaves does not wait for answers: everything has to be asked for at once.
    await Promise.all(Array.from({ length: last ? waiting.length : AT_ONCE }, one));
    await this.onGone(gone);
    this.#show(gone);
  }

  /** The page is left: nobody can undo anything any more. */
  flush(): Promise<unknown> {
    return Promise.all([...this.#pending].map((deletion) => this.finish(deletion, true)));
  }

  #hide(documents: readonly Document[]): void {
    this.#hidden = new Set([...this.#hidden, ...documents.map(({ id }) => id)]);
    for (const listener of this.#listeners) listener();
  }

  #show(documents: readonly Document[]): void {
    const shown = new Set(documents.map(({ id }) => id));
    this.#hidden = new Set([...this.#hidden].filter((id) => !shown.has(id)));
    for (const listener of this.#listeners) listener();
  }
}
