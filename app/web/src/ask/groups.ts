/** The list of conversations in groups: pinned ones, then the folders by name, then the others. */
import type { Conversation } from "../api/types";
import { t } from "../strings";

export interface Group {
  /** Null where there is only one group, which needs no name. */
  name: string | null;
  isFolder: boolean;
  conversations: Conversation[];
}

/** Each group in the order of the list. A pinned one that is in a folder is with the pinned ones. */
export function groupsOf(listed: readonly Conversation[]): Group[] {
  const words = t.ask.conversations;
  const pinned = listed.filter((one) => one.pinned);
  const folders = new Map<string, Conversation[]>();
  const others: Conversation[] = [];
  for (const one of listed) {
    if (one.pinned) continue;
    if (one.folder === null) others.push(one);
    else folders.set(one.folder, [...(folders.get(one.folder) ?? []), one]);
  }
  const named = [...folders].sort(([one], [other]) => one.localeCompare(other));
  const groups: Group[] = [
    { name: words.pinned, isFolder: false, conversations: pinned },
    ...named.map(([name, conversations]) => ({ name, isFolder: true, conversations })),
  ].filter(({ conversations }) => conversations.length > 0);
  if (groups.length === 0) return [{ name: null, isFolder: false, conversations: others }];
  return others.length === 0 ? groups : [...groups, { name: words.others, isFolder: false, conversations: others }];
}
