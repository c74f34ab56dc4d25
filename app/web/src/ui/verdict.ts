/** What a score of feedback, from -1 to 1, comes down to. */
export type Verdict = "good" | "bad" | "neutral";

export function verdictOf(score: number): Verdict {
  return score > 0 ? "good" : score < 0 ? "bad" : "neutral";
}
