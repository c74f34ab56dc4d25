/** An answer as Markdown to take along: its footnotes are Markdown's, with the passages quoted. */
import type { Citation } from "../api/types";
import { t } from "../strings";
import { pageWords } from "./places";
import { segmentsOf } from "./segments";

/** @param exact Which citations stand at a document's own words: these need no confirmation. */
export function answerAsMarkdown(
  answer: string,
  citations: readonly Citation[],
  exact: ReadonlySet<number> = new Set(),
): string {
  const notes: string[] = [];
  const numbers = new Map<string, number>();
  const numberOf = (citation: Citation, place: number): number => {
    // What one sentence is confirmed by may not confirm another.
    const doubtful = !citation.verified && !exact.has(place);
    const { document_id, version, start_char, end_char } = citation;
    const passage = [document_id, version, start_char, end_char, doubtful].join(" ");
    const known = numbers.get(passage);
    if (known !== undefined) return known;
    notes.push(entry(citation, doubtful));
    numbers.set(passage, notes.length);
    return notes.length;
  };
  const text = segmentsOf(answer, citations)
    .map((segment) => {
      if (segment.kind === "text") return inert(segment.text);
      const citation = segment.citation === null ? undefined : citations[segment.citation];
      if (segment.citation === null || citation === undefined) return `[${segment.number}]`;
      return `[^${numberOf(citation, segment.citation)}]`;
    })
    .join("");
  if (notes.length === 0) return text.trim();
  const entries = notes.map((note, place) => `[^${place + 1}]: ${note}`);
  return `${text.trim()}\n\n${entries.join("\n")}\n`;
}

function entry(citation: Citation, doubtful: boolean): string {
  const quote = escaped(citation.cited_text);
  const words = t.ask.copied.quoteEntry(quote, escaped(citation.filename), pageWords(citation));
  return doubtful ? `${words} (${t.ask.copied.notConfirmed})` : words;
}

/** What an answer says, without what would load something where it is put: images, and HTML. */
function inert(text: string): string {
  return text.replace(/!\[/g, "\\![").replace(/<(?=[a-z/!?])(?!https?:|mailto:)/gi, "\\<");
}

/** Somebody's document as text that Markdown takes for text, in one line. */
function escaped(text: string): string {
  return text
    .split(/\s+/)
    .join(" ")
    .trim()
    .replace(/[\\`*_[\]<>|~#$!]/g, "\\$&");
}
