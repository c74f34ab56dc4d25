/** Why the server did not take a file, and whether it will later. */
import { Problem } from "../api/http";
import { t } from "../strings";
import { wordsOf } from "../ui/ProblemNote";

export interface Refusal {
  /** The HTTP status, 0 where none came. */
  status: number;
  slug: string;
  /** Says more exactly what is the matter with the file, such as `encrypted`. */
  code: string;
  retryAfter: number | null;
  words: string;
  /** Why it is waited for, where it is. */
  because: string;
}

const LONGEST_WAIT = 600; // seconds; what takes longer, such as a budget's next month, nobody sits there for
const LOST_TRIES = 4;
const BUSY_TRIES = 40;

/** What a failed request says; `code` is the member of that name in its problem document. */
export function refusalOf(error: unknown, code = ""): Refusal {
  if (!(error instanceof Problem)) {
    return { status: -1, slug: "", code, retryAfter: null, words: wordsOf(error), because: "" };
  }
  const { status, slug, retryAfter } = error;
  const say = t.documents.uploads;
  const because = status === 507 ? say.full : status === 0 ? say.lost : say.busy;
  const words = status === 0 ? say.brokenOff : wordsOf(error);
  return { status, slug, code, retryAfter, words, because };
}

/** Seconds after which the same file is sent again, `null` when that is for a person to decide.
 *
 * What is a new version of a document is not sent again when no answer came: it may have arrived, and would make two. */
export function waitSeconds(refusal: Refusal, tries: number, makesVersion: boolean): number | null {
  const { status, retryAfter } = refusal;
  const told = (otherwise: number) => {
    const seconds = retryAfter ?? otherwise;
    return seconds <= LONGEST_WAIT && tries < BUSY_TRIES ? seconds : null;
  };
  switch (status) {
    case 429:
      // A budget without a next period never has room again.
      return refusal.slug === "budget-exceeded" && retryAfter === null ? null : told(5);
    case 503:
      return told(5);
    case 507:
      return told(30);
    case 409:
      // The same file under the same key is still being taken; any other conflict stays one.
      return retryAfter === null ? null : told(5);
    case 0:
    case 502:
    case 504:
      return makesVersion || tries >= LOST_TRIES ? null : Math.min(2 ** (tries + 1), 30);
    default:
      return null;
  }
}

/** Whether the same file would be refused again for what it is. */
export function isFinal(refusal: Refusal): boolean {
  return refusal.code !== "encrypted" && [413, 415, 422].includes(refusal.status);
}
