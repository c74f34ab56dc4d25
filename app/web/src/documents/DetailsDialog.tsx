/** All that is known of a document, and what can be done with it. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { Link } from "wouter";
import { address, Problem } from "../api/http";
import type { Collection, Document } from "../api/types";
import { t } from "../strings";
import { Dialog } from "../ui/Dialog";
import { ProblemNote } from "../ui/ProblemNote";
import { MetadataEditor } from "./MetadataEditor";
import { readDocument, retryDocument } from "./server";
import { noteDocument, useDelete, useUploads } from "./UploadProvider";
import { PasswordForm } from "./UploadRow";
import { Versions } from "./Versions";
import { fullTime, isWorking, numberWords, sizeWords, stageWords, typeWords } from "./words";

interface DetailsDialogProps {
  document: Document;
  collection: Collection | null;
  mayChange: boolean;
  onClose: () => void;
}

export function DetailsDialog({ document: listed, collection, mayChange, onClose }: DetailsDialogProps) {
  const words = t.documents.details;
  const read = useQuery({
    queryKey: ["documents", "one", listed.id],
    queryFn: ({ signal }) => readDocument(listed.id, signal),
    initialData: listed,
    refetchInterval: ({ state }) => (state.data !== undefined && isWorking(state.data) ? 2000 : false),
  });
  const document = read.data;
  const isGone = read.error instanceof Problem && read.error.status === 404;
  return (
    <Dialog title={document.filename} open onClose={onClose}>
      <div className="stack document-details">
        {read.isError && <ProblemNote problem={read.error} />}
        {document.status === "failed" && <Failure document={document} mayChange={mayChange} />}
        {isWorking(document) && <Working document={document} />}
        <div className="row">
          <Link className="button" href={`/documents/${document.id}`}>
            {words.open}
          </Link>
          <a className="button" href={address(`v1/documents/${document.id}/file`)} download>
            {words.download}
          </a>
          {mayChange && !isGone && <Changes document={document} onClose={onClose} />}
        </div>
        <Facts document={document} collection={collection} />
        <MetadataEditor key={document.id} document={document} mayChange={mayChange && !isGone} />
        <Versions document={document} />
      </div>
    </Dialog>
  );
}

function Changes({ document, onClose }: { document: Document; onClose: () => void }) {
  const uploads = useUploads();
  const drop = useDelete();
  const input = useRef<HTMLInputElement>(null);
  const words = t.documents.details;

  function replace(chosen: HTMLInputElement) {
    const [file] = chosen.files ?? [];
    if (file === undefined) return;
    uploads.add([{ file, path: file.name }], document.collection_id, document.id);
    onClose();
  }

  return (
    <>
      <button type="button" onClick={() => input.current?.click()}>
        {words.replace}
      </button>
      <input
        ref={input}
        type="file"
        hidden
        aria-label={words.replace}
        onChange={(event) => replace(event.currentTarget)}
      />
      <button
        type="button"
        className="danger"
        onClick={() => {
          onClose();
          drop([document]);
        }}
      >
        {words.delete}
      </button>
    </>
  );
}

function Failure({ document, mayChange }: { document: Document; mayChange: boolean }) {
  const queries = useQueryClient();
  const uploads = useUploads();
  const [problem, setProblem] = useState<unknown>(null);
  const words = t.documents.details;

  async function retry(password: string | null) {
    setProblem(null);
    try {
      const document_ = await retryDocument(document.id, password);
      noteDocument(queries, document_);
      uploads.noted(document_);
    } catch (error) {
      setProblem(error);
    }
  }

  return (
    <div className="problem">
      <p>{document.error?.detail ?? t.documents.uploads.failing}</p>
      {document.live_version !== null && <p>{words.olderSearched(document.live_version)}</p>}
      {mayChange &&
        (document.error?.code === "encrypted" ? (
          <PasswordForm onPassword={(password) => void retry(password)} />
        ) : (
          <button type="button" onClick={() => void retry(null)}>
            {words.retry}
          </button>
        ))}
      {problem !== null && <ProblemNote problem={problem} />}
    </div>
  );
}

function Working({ document }: { document: Document }) {
  const words = t.documents.details;
  return (
    <p role="status" className="held">
      {stageWords(document)}
      {document.live_version !== null && ` ${words.olderSearched(document.live_version)}`}
    </p>
  );
}

function Facts({ document, collection }: { document: Document; collection: Collection | null }) {
  const words = t.documents.details;
  const { counts, usage } = document;
  const facts: [string, string][] = [
    [words.collection, collection?.name ?? "—"],
    [words.type, typeWords(document)],
    [words.size, sizeWords(document.bytes)],
    [words.pages, counts.pages > 0 ? numberWords(counts.pages) : "—"],
    [words.passages, numberWords(counts.chunks)],
    [words.tokens, words.tokensOf(numberWords(counts.tokens))],
    [words.spent, words.tokensOf(numberWords(usage.embedding_tokens))],
    [words.added, fullTime(document.created_at)],
    [words.changed, fullTime(document.updated_at)],
    ...(document.external_id === null ? [] : [[words.externalId, document.external_id] satisfies [string, string]]),
    [words.id, document.id],
  ];
  return (
    <dl className="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
