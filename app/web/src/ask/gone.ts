/** The documents that a conversation's answers cite and that are deleted: their ids. */
import { createContext, useContext } from "react";

const NOTHING: ReadonlySet<string> = new Set();

export const GoneDocuments = createContext<ReadonlySet<string>>(NOTHING);

export function useGone(): ReadonlySet<string> {
  return useContext(GoneDocuments);
}
