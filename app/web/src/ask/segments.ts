/** An answer as pieces: text, and the places of its footnotes. The server counts code points, JavaScript UTF-16 units;
 * everything here counts code points. */
import type { Citation } from "../api/types";

export interface Span {
  start: number;
  end: number;
}

export type Segment =
  /** `marked`: a document's words that answer. */
  | { kind: "text"; text: string; uncited: boolean; marked?: boolean }
  /** `citation` is its place in the list of citations, null while that list has not come. */
  | { kind: "mark"; number: number; citation: number | null };

type Place = Pick<Citation, "index" | "answer_start" | "answer_end">;

/** The pieces of an answer, or of a part of it, in order; joined, with `[n]` for each mark, they are the answer. */
export function segmentsOf(
  answer: string,
  citations: readonly Place[],
  uncited: readonly Span[] = [],
  part?: Span,
): Segment[] {
  const points = Array.from(answer).slice(0, part?.end);
  const segments: Segment[] = [];
  let at = part?.start ?? 0;
  const places = citations
    .map((citation, position) => ({ ...citation, position }))
    .sort((one, other) => one.answer_start - other.answer_start);
  for (const place of places) {
    // What does not lie in the answer, or within another, is not shown in it.
    if (place.answer_start < at || place.answer_end > points.length || place.answer_end <= place.answer_start) continue;
    pushText(segments, points, { start: at, end: place.answer_start }, uncited);
    segments.push({ kind: "mark", number: place.index, citation: place.position });
    at = place.answer_end;
  }
  pushText(segments, points, { start: at, end: points.length }, uncited);
  return segments;
}

/** The pieces of an answer that is still being written: its footnotes come at its end, but their marks are there. */
export function pendingSegmentsOf(answer: string): Segment[] {
  const segments: Segment[] = [];
  let at = 0;
  for (const found of answer.matchAll(/\[(\d{1,3})\]/g)) {
    if (found.index > at) segments.push({ kind: "text", text: answer.slice(at, found.index), uncited: false });
    segments.push({ kind: "mark", number: Number(found[1]), citation: null });
    at = found.index + found[0].length;
  }
  if (at < answer.length) segments.push({ kind: "text", text: answer.slice(at), uncited: false });
  return segments;
}

/** What the numbers of marks are shown as, on the page and in a copy: 1 for the first, 2 for the next that is another. In
 * the answer itself they number what the model was given to read, of which it may have cited the eighth alone. */
export function shownNumbers(segments: readonly Segment[]): ReadonlyMap<number, number> {
  const shown = new Map<number, number>();
  for (const segment of segments) {
    if (segment.kind === "mark" && !shown.has(segment.number)) shown.set(segment.number, shown.size + 1);
  }
  return shown;
}

/** Text from `span` on, cut where the uncited begins and ends. */
function pushText(segments: Segment[], points: readonly string[], span: Span, uncited: readonly Span[]): void {
  const edges = new Set([span.start, span.end]);
  for (const one of uncited) {
    for (const edge of [one.start, one.end]) if (edge > span.start && edge < span.end) edges.add(edge);
  }
  const sorted = [...edges].sort((one, other) => one - other);
  sorted.slice(1).forEach((end, before) => {
    const start = sorted[before] ?? end;
    const text = points.slice(start, end).join("");
    const inside = uncited.some((one) => one.start <= start && end <= one.end);
    if (text !== "") segments.push({ kind: "text", text, uncited: inside });
  });
}
