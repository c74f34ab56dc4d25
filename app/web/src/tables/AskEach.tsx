/** Leads from the documents to a new table over some of them. */
import { Link } from "wouter";
import type { Collection, Document } from "../api/types";
import { EVERYTHING, type Scope } from "../ask/scope";
import { words } from "./strings";

interface AskEachProps {
  /** Those of a collection. */
  collection?: Collection | null;
  /** Those that are chosen. */
  documents?: readonly Document[];
}

export function AskEach({ collection = null, documents = [] }: AskEachProps) {
  const scope: Scope = {
    ...EVERYTHING,
    collections: collection === null ? [] : [{ id: collection.id, name: collection.name }],
    documents: documents.map(({ id, filename: name }) => ({ id, name })),
  };
  return (
    <Link href="/tables" state={{ scope }} className="button plain">
      {documents.length === 0 ? words.askEach : words.askChosen}
    </Link>
  );
}
