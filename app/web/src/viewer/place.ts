/** Which passage of which document an address names: `#/documents/<id>?version=2&start=10&end=90&page=4`. */

/** Characters of the canonical text: the first, and one past the last. They count Unicode code points. */
export interface Span {
  start: number;
  end: number;
}

export interface Place {
  document: string;
  version: number | null;
  span: Span | null;
  page: number | null;
}

/** The place in what follows `#/documents/`. A part that makes no sense is left out. */
export function placeOf(given: string): Place {
  const question = given.indexOf("?");
  const document = question < 0 ? given : given.slice(0, question);
  const query = new URLSearchParams(question < 0 ? "" : given.slice(question + 1));
  const start = wholeNumber(query.get("start"));
  const end = wholeNumber(query.get("end"));
  return {
    document,
    version: wholeNumber(query.get("version"), 1),
    span: start !== null && end !== null && start < end ? { start, end } : null,
    page: wholeNumber(query.get("page"), 1),
  };
}

/** The address of a place, for an ordinary link: `wouter` would take what follows the `?` out of the fragment. */
export function addressOf({ document, version, span, page }: Place): string {
  const query = new URLSearchParams();
  if (version !== null) query.set("version", String(version));
  if (span !== null) query.set("start", String(span.start));
  if (span !== null) query.set("end", String(span.end));
  if (page !== null) query.set("page", String(page));
  const text = query.toString();
  return `#/documents/${encodeURIComponent(document)}${text === "" ? "" : `?${text}`}`;
}

function wholeNumber(text: string | null, least = 0): number | null {
  if (text === null || !/^\d{1,15}$/.test(text)) return null;
  const number = Number(text);
  return number >= least ? number : null;
}
