/** The list of documents that fit, page by page, and what can be done with several of them. */
import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { useMemo, useRef, useState } from "react";
import type { Collection, Document } from "../api/types";
import { t } from "../strings";
import { AskEach } from "../tables/AskEach";
import { MoreButton } from "../ui/MoreButton";
import { ProblemNote } from "../ui/ProblemNote";
import { DocumentTable } from "./DocumentTable";
import { Filters } from "./Filters";
import { listDocuments } from "./server";
import { useDelete, useHidden } from "./UploadProvider";
import { isNarrowed, NO_VIEW, type View, wantedBy } from "./view";
import { isWorking } from "./words";

const WORKING_EVERY = 5000;

interface DocumentListProps {
  view: View;
  onView: (view: View) => void;
  collections: readonly Collection[];
  mayChange: boolean;
  onDetails: (document: Document) => void;
}

export function DocumentList({ view, onView, collections, mayChange, onDetails }: DocumentListProps) {
  const wanted = wantedBy(view);
  const hidden = useHidden();
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const top = useRef<HTMLDivElement>(null);
  const drop = useDelete();
  const words = t.documents;

  const list = useInfiniteQuery({
    queryKey: ["documents", "list", wanted],
    queryFn: ({ pageParam, signal }) => listDocuments(wanted, pageParam, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor ?? null,
    placeholderData: keepPreviousData,
    // What was added elsewhere is followed by nothing else.
    refetchInterval: ({ state }) =>
      state.data?.pages.some((page) => page.data.some(isWorking)) === true ? WORKING_EVERY : false,
  });

  const documents = useMemo(
    () => (list.data?.pages ?? []).flatMap((page) => page.data).filter(({ id }) => !hidden.has(id)),
    [list.data, hidden],
  );
  const fields = useMemo(
    () => [...new Set(documents.flatMap(({ metadata }) => Object.keys(metadata)))].toSorted(),
    [documents],
  );
  const chosen = documents.filter(({ id }) => selected.has(id));

  function remove(gone: readonly Document[]) {
    drop(gone);
    setSelected(new Set());
    top.current?.focus();
  }

  const isEmpty = list.isSuccess && documents.length === 0 && !list.hasNextPage;
  const isBare = isEmpty && !isNarrowed(view) && hidden.size === 0;
  return (
    <div ref={top} tabIndex={-1} className="document-list">
      {!(isBare && view.conditions.length === 0) && <Filters view={view} fields={fields} onView={onView} />}
      {chosen.length > 0 && (
        <div className="row bulk">
          <span aria-live="polite">{words.list.selected(chosen.length)}</span>
          <AskEach documents={chosen} />
          {mayChange && (
            <button type="button" className="danger" onClick={() => remove(chosen)}>
              {words.list.delete}
            </button>
          )}
          <button type="button" className="plain" onClick={() => setSelected(new Set())}>
            {words.list.clear}
          </button>
        </div>
      )}
      {list.isPending && <p className="centred quiet">{words.list.loading}</p>}
      {list.isError && <ProblemNote problem={list.error} onRetry={() => void list.refetch()} />}
      {isBare && <Empty inCollection={view.collectionId !== null} mayChange={mayChange} />}
      {isEmpty && !isBare && (
        <p className="centred">
          {words.nothingFound}{" "}
          <button type="button" onClick={() => onView({ ...NO_VIEW, collectionId: view.collectionId })}>
            {words.clearSearch}
          </button>
        </p>
      )}
      {documents.length > 0 && (
        <DocumentTable
          documents={documents}
          collections={view.collectionId === null && collections.length > 1 ? collections : null}
          selected={selected}
          onSelect={setSelected}
          onDetails={onDetails}
        />
      )}
      {list.hasNextPage && (
        <p className="centred">
          <MoreButton list={list} />
        </p>
      )}
    </div>
  );
}

/** Tells a newcomer what to do first. */
function Empty({ inCollection, mayChange }: { inCollection: boolean; mayChange: boolean }) {
  const words = t.documents;
  return (
    <div className="empty">
      <svg viewBox="0 0 48 48" width="48" height="48" aria-hidden="true">
        <path d="M13 5h15l9 9v29H13z M28 5v9h9 M25 37V24 M19 29l6-6 6 6" />
      </svg>
      <h3>{inCollection ? words.emptyCollection : words.emptyTitle}</h3>
      <p>{mayChange ? words.empty : words.emptyReader}</p>
      {mayChange && <p className="quiet small">{words.formats}</p>}
    </div>
  );
}
