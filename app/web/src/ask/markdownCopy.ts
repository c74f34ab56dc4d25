/** An answer as Markdown to take along: its footnotes are Markdown's, with the passages quoted. */
import type { Citation } from "../api/types";
import { t } from "../strings";
import { isChanged, sinceOf } from "./ageing";
import { pageWords } from "./places";
import { segmentsOf, shownNumbers } from "./segments";

/** A passage with what was found about each of the sentences that name it. */
interface Note {
  citation: Citation;
  doubts: boolean[];
}

/** The footnotes have the numbers that the page shows: one a source, with all passages that are cited of it.
 *
 * @param exact Which citations stand at a document's own words: these need no confirmation. */
export function answerAsMarkdown(
  answer: string,
  citations: readonly Citation[],
  exact: ReadonlySet<number> = new Set(),
): string {
  const segments = segmentsOf(answer, citations);
  const numbers = shownNumbers(segments);
  const sources = new Map<number, Map<string, Note>>();
  const text = segments
    .map((segment) => {
      if (segment.kind === "text") return inert(segment.text);
      const citation = segment.citation === null ? undefined : citations[segment.citation];
      const number = numbers.get(segment.number);
      if (segment.citation === null || citation === undefined || number === undefined) return `[${segment.number}]`;
      const notes = sources.get(number) ?? new Map<string, Note>();
      sources.set(number, notes);
      const { document_id, version, start_char, end_char } = citation;
      const passage = [document_id, version, start_char, end_char].join(" ");
      const note = notes.get(passage) ?? { citation, doubts: [] };
      const doubted = !citation.verified && !exact.has(segment.citation);
      note.doubts.push(doubted || isChanged(sinceOf(citation)));
      notes.set(passage, note);
      return `[^${number}]`;
    })
    .join("");
  if (sources.size === 0) return text.trim();
  const entries = [...sources]
    .sort(([one], [other]) => one - other)
    .map(([number, notes]) => `[^${number}]: ${[...notes.values()].map(entry).join("; ")}`);
  return `${text.trim()}\n\n${entries.join("\n")}\n`;
}

function entry({ citation, doubts }: Note): string {
  const quote = escaped(citation.cited_text);
  const words = t.ask.copied.quoteEntry(quote, escaped(citation.filename), pageWords(citation));
  const confirmed = doubts.filter((doubt) => !doubt).length;
  if (confirmed === doubts.length) return words;
  // What one sentence is confirmed by may not confirm another.
  const said = confirmed === 0 ? t.ask.copied.notConfirmed : t.ask.copied.confirmedPartly(confirmed, doubts.length);
  return `${words} (${said})`;
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
