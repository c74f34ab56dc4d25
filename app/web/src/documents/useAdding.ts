import { t } from "../strings";
import { useNotices } from "../ui/notices";
import type { Gathered } from "./entries";
import { useUploads } from "./UploadProvider";

/** Adds files to a collection, by default the one every tenant begins with, and says what was left out. Whether there
 * was any to add. */
export function useAdding(): (gathered: Gathered, collectionId: string | null) => boolean {
  const uploads = useUploads();
  const say = useNotices();
  const words = t.documents;
  return ({ files, leftOut, unreadable }, collectionId) => {
    if (leftOut > 0) say(words.leftOut(leftOut));
    if (unreadable.length > 0) say(words.unreadable(unreadable.length));
    if (files.length > 0) uploads.add(files, collectionId);
    else if (leftOut + unreadable.length === 0) say(words.nothingToAdd);
    return files.length > 0;
  };
}
