/** Documents in rows: narrow screens show the name, what it is and how it stands; wide ones all columns. */
import { Link } from "wouter";
import type { Collection, Document } from "../api/types";
import { t } from "../strings";
import { FileName } from "../ui/FileName";
import { fullTime, isWorking, numberWords, sizeWords, stageWords, statusTone, statusWord, timeWords } from "./words";

interface DocumentTableProps {
  documents: readonly Document[];
  /** To name a document's collection; `null` where all are in the same. */
  collections: readonly Collection[] | null;
  /** The selected ids. */
  selected: ReadonlySet<string>;
  onSelect: (selected: ReadonlySet<string>) => void;
  onDetails: (document: Document) => void;
}

export function DocumentTable({ documents, collections, selected, onSelect, onDetails }: DocumentTableProps) {
  const words = t.documents.list;
  const all = documents.every(({ id }) => selected.has(id));

  function turn(id: string) {
    const next = new Set(selected);
    if (!next.delete(id)) next.add(id);
    onSelect(next);
  }

  return (
    <table className="documents-table">
      <thead>
        <tr>
          <th className="select">
            <label>
              <input
                type="checkbox"
                aria-label={words.selectAll}
                checked={all}
                onChange={() => onSelect(all ? new Set() : new Set(documents.map(({ id }) => id)))}
              />
            </label>
          </th>
          <th>{words.name}</th>
          {collections !== null && <th className="wide">{words.collection}</th>}
          <th>{words.status}</th>
          <th className="wide number">{words.pages}</th>
          <th className="wide number">{words.size}</th>
          <th className="wide">{words.added}</th>
          <th>
            <span className="visually-hidden">{words.details}</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {documents.map((document) => (
          <Row
            key={document.id}
            document={document}
            collection={
              collections === null ? null : (collections.find(({ id }) => id === document.collection_id)?.name ?? "—")
            }
            isSelected={selected.has(document.id)}
            onTurn={() => turn(document.id)}
            onDetails={() => onDetails(document)}
          />
        ))}
      </tbody>
    </table>
  );
}

interface RowProps {
  document: Document;
  collection: string | null;
  isSelected: boolean;
  onTurn: () => void;
  onDetails: () => void;
}

function Row({ document, collection, isSelected, onTurn, onDetails }: RowProps) {
  const words = t.documents.list;
  const { filename, counts, bytes, created_at: added } = document;
  return (
    <tr className={isSelected ? "selected" : undefined}>
      <td className="select">
        <label>
          <input type="checkbox" aria-label={words.select(filename)} checked={isSelected} onChange={onTurn} />
        </label>
      </td>
      <td className="name">
        <Link href={`/documents/${document.id}`}>
          <FileName name={filename} />
        </Link>
        {document.version > 1 && <span className="badge">{words.version(document.version)}</span>}
        <span className="narrow quiet small">
          {[collection, sizeWords(bytes), timeWords(added)].filter((one) => one !== null).join(" · ")}
        </span>
        {document.status === "failed" && document.error !== null && (
          <span className="why small">{document.error.detail}</span>
        )}
      </td>
      {collection !== null && <td className="wide collection">{collection}</td>}
      <td>
        <Status document={document} />
      </td>
      <td className="wide number">{counts.pages > 0 ? numberWords(counts.pages) : "—"}</td>
      <td className="wide number">{sizeWords(bytes)}</td>
      <td className="wide">
        <time dateTime={added} title={fullTime(added)}>
          {timeWords(added)}
        </time>
      </td>
      <td className="details">
        <button
          type="button"
          className="plain"
          aria-label={words.detailsOf(filename)}
          title={words.details}
          onClick={onDetails}
        >
          <span aria-hidden="true">⋯</span>
        </button>
      </td>
    </tr>
  );
}

export function Status({ document }: { document: Document }) {
  const { status } = document;
  return (
    <span className={`badge ${statusTone(status)}`} title={isWorking(document) ? stageWords(document) : undefined}>
      {statusWord(status)}
    </span>
  );
}
