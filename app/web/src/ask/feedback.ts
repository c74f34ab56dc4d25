/** What somebody says of an answer, and what its conversation then tells of it. */
import type { Feedback, WholeConversation } from "../api/types";
import { verdictOf } from "../ui/verdict";

const SCORES = { good: 1, bad: -1 } as const;

/** The most characters a comment may have. */
export const LONGEST_COMMENT = 4000;

/** What pressing one of the two buttons says: the other verdict, or nothing any more where it is pressed again. */
export function pressed(said: Feedback | null, verdict: keyof typeof SCORES): Feedback | null {
  return said !== null && verdictOf(said.score) === verdict ? null : { score: SCORES[verdict], comment: null };
}

/** The same verdict with another comment; a blank one is none. */
export function commented(said: Feedback, text: string): Feedback {
  return { ...said, comment: text.trim() || null };
}

/** The conversation after something was said of one of its answers. */
export function withFeedback(kept: WholeConversation, requestId: string, said: Feedback | null): WholeConversation {
  return {
    ...kept,
    data: kept.data.map((turn) => (turn.request_id === requestId ? { ...turn, feedback: said } : turn)),
  };
}
