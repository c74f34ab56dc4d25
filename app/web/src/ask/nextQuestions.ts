/** The questions to ask next: what the cited documents are known to answer besides, the nearest to a footnote first. */
import type { Citation, Overview } from "../api/types";

export interface NextQuestion {
  question: string;
  document: { id: string; name: string };
}

const MOST = 3;

/** At most three questions of the cited documents that were not asked yet. */
export function nextQuestions(
  citations: readonly Citation[],
  overviews: readonly Overview[],
  asked: readonly string[],
): NextQuestion[] {
  const known = new Set(asked.map(folded));
  const found: (NextQuestion & { distance: number })[] = [];
  for (const { document_id, questions } of overviews) {
    const cited = citations.filter((one) => one.document_id === document_id);
    for (const one of questions) {
      if (!one.confirmed || known.has(folded(one.question))) continue;
      known.add(folded(one.question));
      const distance = Math.min(...cited.map((citation) => between(citation, one)));
      found.push({ question: one.question, document: { id: document_id, name: cited[0]?.filename ?? "" }, distance });
    }
  }
  return found
    .sort((one, other) => one.distance - other.distance)
    .slice(0, MOST)
    .map(({ question, document }) => ({ question, document }));
}

interface Range {
  start_char: number;
  end_char: number;
}

function between(one: Range, other: Range): number {
  return Math.max(0, one.start_char - other.end_char, other.start_char - one.end_char);
}

function folded(question: string): string {
  return question.trim().toLowerCase();
}
