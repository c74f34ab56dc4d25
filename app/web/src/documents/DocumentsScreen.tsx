/** The documents: adding them, finding them, and what is known of each. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Collection, Document } from "../api/types";
import { useSession } from "../session/session";
import { t } from "../strings";
import { AskEach } from "../tables/AskEach";
import { ProblemNote } from "../ui/ProblemNote";
import { AddFiles } from "./AddFiles";
import { CollectionActions } from "./CollectionActions";
import { Collections } from "./Collections";
import { DetailsDialog } from "./DetailsDialog";
import { DocumentList } from "./DocumentList";
import "./documents.css";
import { listCollections } from "./server";
import { UploadPanel } from "./UploadPanel";
import { useKept } from "./UploadProvider";
import { useAdding } from "./useAdding";
import type { View } from "./view";

export default function DocumentsScreen() {
  const session = useSession();
  const mayChange = session.role !== "reader";
  const add = useAdding();
  const kept = useKept();
  const [view, setKeptView] = useState(kept.view);
  const [detailed, setDetailed] = useState<Document | null>(null);
  const [target, setTarget] = useState<string | null>(null);
  const collections = useQuery({ queryKey: ["collections"], queryFn: ({ signal }) => listCollections(signal) });

  function setView(next: View) {
    kept.view = next;
    setKeptView(next);
  }

  const all = collections.data ?? [];
  const shown = all.find(({ id }) => id === view.collectionId) ?? null;
  const into = shown ?? all.find(({ id }) => id === target) ?? startingPoint(all);

  return (
    <div className="screen documents">
      <div className="documents-head">
        <h1>{t.documents.title}</h1>
        {mayChange && (
          <AddFiles
            into={into}
            choices={shown === null && all.length > 1 ? all : null}
            onTarget={setTarget}
            onFiles={(gathered) => add(gathered, into?.id ?? null)}
          />
        )}
      </div>
      <UploadPanel />
      {collections.isError && <ProblemNote problem={collections.error} onRetry={() => void collections.refetch()} />}
      <div className="documents-body">
        <Collections
          collections={all}
          chosen={shown}
          mayMake={mayChange && session.collections === null}
          onChoose={(id) => setView({ ...view, collectionId: id })}
        />
        <section aria-label={shown?.name ?? t.documents.collections.all} className="documents-main">
          <div className="collection-head">
            <h2>{shown?.name ?? t.documents.collections.all}</h2>
            <span className="row">
              {(shown === null ? all : [shown]).some(({ documents }) => documents > 0) && (
                <AskEach collection={shown} />
              )}
              {shown !== null && mayChange && (
                <CollectionActions collection={shown} onDeleted={() => setView({ ...view, collectionId: null })} />
              )}
            </span>
          </div>
          <DocumentList
            view={{ ...view, collectionId: shown?.id ?? null }}
            onView={setView}
            collections={all}
            mayChange={mayChange}
            onDetails={setDetailed}
          />
        </section>
      </div>
      {detailed !== null && (
        <DetailsDialog
          document={detailed}
          collection={all.find(({ id }) => id === detailed.collection_id) ?? null}
          mayChange={mayChange}
          onClose={() => setDetailed(null)}
        />
      )}
    </div>
  );
}

/** Where files go unless somebody says otherwise: the collection every tenant begins with, or the first one there is. */
function startingPoint(collections: readonly Collection[]): Collection | null {
  return collections.find(({ name }) => name === "default") ?? collections[0] ?? null;
}
