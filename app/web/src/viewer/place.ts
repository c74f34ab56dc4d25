/** Which passage of which document an address names: `#/documents/<id>?version=2&start=10&end=90&page=4`. */

/** Characters of the canonical text: the first, and one past the last. They count Unicode code points. */
export interface Span {
  start: number;
  end: number;
}

/** An address names no more of them. */
const MOST_MARKS = 8;

export interface Place {
  document: string;
  version: number | null;
  span: Span | null;
  /** Sentences of the span that matter most, in order; none where all of it does. */
  marks: readonly Span[];
  page: number | null;
}

/** The place in what follows `#/documents/`. A part that makes no sense is left out. */
export function placeOf(given: string): Place {
  const question = given.indexOf("?");
  const document = question < 0 ? given : given.slice(0, question);
  const query = new URLSearchParams(question < 0 ? "" : given.slice(question + 1));
  const span = spanOf(query.get("start"), query.get("end"));
  return {
    document,
    version: wholeNumber(query.get("version"), 1),
    span,
    marks: marksOf(query.getAll("mark"), span),
    page: wholeNumber(query.get("page"), 1),
  };
}

function spanOf(first: string | null, last: string | null): Span | null {
  const start = wholeNumber(first);
  const end = wholeNumber(last);
  return start !== null && end !== null && start < end ? { start, end } : null;
}

/** What is marked within the span, in order and apart from each other: whoever writes addresses may write any. */
function marksOf(given: readonly string[], span: Span | null): Span[] {
  const marks: Span[] = [];
  for (const mark of given.slice(0, MOST_MARKS)) {
    const [first = null, last = null, more] = mark.split("-");
    const found = more === undefined ? spanOf(first, last) : null;
    const after = marks.at(-1)?.end ?? span?.start ?? 0;
    if (found !== null && span !== null && found.start >= after && found.end <= span.end) marks.push(found);
  }
  return marks;
}

/** The address of a place, for an ordinary link: `wouter` would take what follows the `?` out of the fragment. */
export function addressOf({ document, version, span, marks, page }: Place): string {
  const query = new URLSearchParams();
  if (version !== null) query.set("version", String(version));
  if (span !== null) query.set("start", String(span.start));
  if (span !== null) query.set("end", String(span.end));
  for (const { start, end } of marks) query.append("mark", `${start}-${end}`);
  if (page !== null) query.set("page", String(page));
  const text = query.toString();
  return `#/documents/${encodeURIComponent(document)}${text === "" ? "" : `?${text}`}`;
}

function wholeNumber(text: string | null, least = 0): number | null {
  if (text === null || !/^\d{1,15}$/.test(text)) return null;
  const number = Number(text);
  return number >= least ? number : null;
}
