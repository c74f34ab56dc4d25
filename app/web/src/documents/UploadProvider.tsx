/** What goes on behind the documents screen: uploads and deletions under way. It is around all screens, so that going
 * to another one stops nothing. */
import { type InfiniteData, type QueryClient, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useState, useSyncExternalStore } from "react";
import { address, Problem, send, token } from "../api/http";
import type { Document, Page } from "../api/types";
import { t } from "../strings";
import { useNotices } from "../ui/notices";
import { wordsOf } from "../ui/ProblemNote";
import { Deletions } from "./deletions";
import { isIdle, type Queue, readyDocuments } from "./queue";
import { server } from "./server";
import { Uploads, type Watching } from "./uploads";
import { NO_VIEW, type View } from "./view";

interface Behind {
  uploads: Uploads;
  deletions: Deletions;
  /** What the screen showed when it was left. */
  kept: { view: View };
}

const BehindContext = createContext<Behind | null>(null);

const REFRESH_EVERY = 1500;

/** Begins the keys of queries that tell whether there are documents, and which are new. */
export const NEWEST = ["documents", "newest"] as const;

export function UploadProvider({ children }: { children: ReactNode }) {
  const queries = useQueryClient();
  const say = useNotices();
  const [behind] = useState<Behind>(() => ({
    uploads: new Uploads(server, watching(queries)),
    deletions: new Deletions(
      remove,
      () => refresh(queries),
      (document, error) => say(t.documents.deletion.failed(document.filename, wordsOf(error)), { seconds: 12 }),
    ),
    kept: { view: NO_VIEW },
  }));

  useEffect(() => {
    const { uploads, deletions } = behind;
    const leaving = (event: BeforeUnloadEvent) => {
      if (uploads.hasUnsent()) event.preventDefault();
    };
    const left = () => void deletions.flush();
    window.addEventListener("beforeunload", leaving);
    window.addEventListener("pagehide", left);
    window.addEventListener("footnote-signing-out", left);
    return () => {
      window.removeEventListener("beforeunload", leaving);
      window.removeEventListener("pagehide", left);
      window.removeEventListener("footnote-signing-out", left);
      uploads.close();
    };
  }, [behind]);

  useEffect(() => {
    const { uploads } = behind;
    let worked = false;
    return uploads.subscribe(() => {
      const queue = uploads.snapshot();
      const idle = isIdle(queue);
      const ready = readyDocuments(queue).length;
      if (worked && idle && ready > 0) say(t.documents.uploads.allReady(ready));
      worked = !idle;
    });
  }, [behind, say]);

  return <BehindContext value={behind}>{children}</BehindContext>;
}

function useBehind(): Behind {
  const behind = useContext(BehindContext);
  if (behind === null) throw new Error("uploads go on inside of their provider");
  return behind;
}

export function useUploads(): Uploads {
  return useBehind().uploads;
}

/** What is being added, as it changes. */
export function useQueue(): Queue {
  const { uploads } = useBehind();
  return useSyncExternalStore(uploads.subscribe, uploads.snapshot);
}

/** The ids of documents that are about to be deleted. */
export function useHidden(): ReadonlySet<string> {
  const { deletions } = useBehind();
  return useSyncExternalStore(deletions.subscribe, deletions.snapshot);
}

export function useKept(): Behind["kept"] {
  return useBehind().kept;
}

/** A function that deletes documents, with some seconds to change one's mind. */
export function useDelete(): (documents: readonly Document[]) => void {
  const { deletions } = useBehind();
  const say = useNotices();
  return (documents) => {
    const [first] = documents;
    if (first === undefined) return;
    const words = t.documents.deletion;
    const deletion = deletions.begin(documents);
    const dismiss = say(documents.length === 1 ? words.done(first.filename) : words.doneMany(documents.length), {
      action: {
        label: words.undo,
        act: () => {
          dismiss();
          deletions.undo(deletion);
        },
      },
      seconds: 8,
      onGone: () => void deletions.finish(deletion),
    });
  };
}

/** Put what is now known of a document into everything that shows it. */
export function noteDocument(queries: QueryClient, document: Document): void {
  queries.setQueriesData<InfiniteData<Page<Document>>>({ queryKey: ["documents", "list"] }, (list) =>
    list === undefined
      ? undefined
      : {
          ...list,
          pages: list.pages.map((page) => ({
            ...page,
            data: page.data.map((shown) => (shown.id === document.id ? document : shown)),
          })),
        },
  );
  queries.setQueryData<Document>(["documents", "one", document.id], (shown) => (shown ? document : undefined));
  if (document.status === "indexed" || document.status === "failed") {
    void queries.invalidateQueries({ queryKey: ["documents", "versions", document.id] });
    forgetNewest(queries);
  }
}

/** Ask again whether there are documents; what was known before is not shown meanwhile on a screen that opens. */
function forgetNewest(queries: QueryClient): void {
  queries.removeQueries({ queryKey: NEWEST, type: "inactive" });
  void queries.invalidateQueries({ queryKey: NEWEST });
}

/** Ask again for what lists documents and counts them. */
export async function refresh(queries: QueryClient): Promise<void> {
  forgetNewest(queries);
  await Promise.all([
    queries.invalidateQueries({ queryKey: ["documents", "list"] }),
    queries.invalidateQueries({ queryKey: ["collections"] }),
    // Answers say of which documents nothing is left to look at.
    queries.invalidateQueries({ queryKey: ["conversations"] }),
  ]);
}

function watching(queries: QueryClient): Watching {
  // The first is shown at once, what follows soon after it together.
  let isPaused = false;
  let isBehind = false;
  function onNew() {
    isBehind = isPaused;
    if (isPaused) return;
    isPaused = true;
    void refresh(queries);
    window.setTimeout(() => {
      isPaused = false;
      if (isBehind) onNew();
    }, REFRESH_EVERY);
  }
  return { onDocument: (document) => noteDocument(queries, document), onNew };
}

/** Deletes a document; one that is gone already is as good. A request that is to outlive its page says so to fetch. */
async function remove(id: string, last: boolean): Promise<void> {
  const path = `v1/documents/${encodeURIComponent(id)}`;
  if (last) {
    const csrf = token();
    await fetch(address(path), {
      method: "DELETE",
      keepalive: true,
      credentials: "same-origin",
      headers: csrf === null ? {} : { "X-Footnote-CSRF": csrf },
    });
    return;
  }
  try {
    await send(path, { method: "DELETE" });
  } catch (error) {
    if (!(error instanceof Problem && error.status === 404)) throw error;
  }
}
