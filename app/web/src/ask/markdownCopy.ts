/** An answer as Markdown to take along: its footnotes are Markdown's, with the passages quoted. */
import type { Citation } from "../api/types";
import { t } from "../strings";
import { pageWords } from "./places";
import { segmentsOf } from "./segments";

export function answerAsMarkdown(answer: string, citations: readonly Citation[]): string {
  const notes: Citation[] = [];
  const numbers = new Map<string, number>();
  const numberOf = (citation: Citation): number => {
    // What one sentence is confirmed by may not confirm another.
    const { document_id, version, start_char, end_char, verified } = citation;
    const passage = [document_id, version, start_char, end_char, verified].join(" ");
    const known = numbers.get(passage);
    if (known !== undefined) return known;
    notes.push(citation);
    numbers.set(passage, notes.length);
    return notes.length;
  };
  const text = segmentsOf(answer, citations)
    .map((segment) => {
      if (segment.kind === "text") return inert(segment.text);
      const citation = segment.citation === null ? undefined : citations[segment.citation];
      return citation === undefined ? `[${segment.number}]` : `[^${numberOf(citation)}]`;
    })
    .join("");
  if (notes.length === 0) return text.trim();
  const entries = notes.map((citation, place) => `[^${place + 1}]: ${entry(citation)}`);
  return `${text.trim()}\n\n${entries.join("\n")}\n`;
}

function entry(citation: Citation): string {
  const quote = escaped(citation.cited_text);
  const words = t.ask.copied.quoteEntry(quote, escaped(citation.filename), pageWords(citation));
  return citation.verified ? words : `${words} (${t.ask.copied.notConfirmed})`;
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
