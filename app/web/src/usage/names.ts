/** What reports call by id, by the names people gave. */
import { useCallback } from "react";
import { useEvery } from "../api/every";
import type { Collection, DocumentUsage, Key, User } from "../api/types";
import { t } from "../strings";
import type { Split } from "./query";

/** A function from the ids of a split to names; ids whose name is not known stay as they are. */
export function useNames(split: Split, documents: readonly DocumentUsage[]): (id: string) => string {
  const users = useEvery<User>("users", "v1/admin/users", split === "user");
  const keys = useEvery<Key>("keys", "v1/admin/keys", split === "key");
  const collections = useEvery<Collection>("collections", "v1/collections", split === "collection");
  return useCallback(
    (id) => {
      if (split === "kind") return id;
      if (id === "") return t.usage.nobody[split];
      if (split === "user") return users.find((user) => user.id === id)?.name || id;
      if (split === "key") return keyName(keys, id);
      if (split === "collection") return collections.find((collection) => collection.id === id)?.name ?? id;
      if (split === "document") return documents.find((document) => document.document_id === id)?.name ?? id;
      return id;
    },
    [split, users, keys, collections, documents],
  );
}

/** A key's name; with the beginning of its secret where others have the same. */
function keyName(keys: readonly Key[], id: string): string {
  const found = keys.find((key) => key.id === id);
  if (found === undefined) return id;
  const alike = keys.filter(({ name }) => name === found.name).length;
  return alike === 1 ? found.name : `${found.name} (${found.prefix}…)`;
}
