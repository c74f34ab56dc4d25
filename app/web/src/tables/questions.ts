/** The columns of a new table, from lines that people write: a question on each, or `Name | question`. */

export interface Column {
  name: string;
  question: string;
}

export type Wrong =
  | { kind: "many"; found: number }
  | { kind: "same"; name: string }
  | { kind: "longName"; name: string }
  | { kind: "longQuestion" };

/** The server's limits: `MOST_COLUMNS`, `MOST_ID` and `MOST_QUESTION`. */
export const MOST_COLUMNS = 20;
export const MOST_NAME = 256;
export const MOST_QUESTION = 32_768;

/** The columns of the lines; an empty line is none, and a question without a name is its own. */
export function columnsOf(lines: string): Column[] {
  return lines
    .split(/\r\n?|\n/)
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .map((line) => {
      const bar = line.indexOf("|");
      const name = line.slice(0, Math.max(0, bar)).trim();
      const question = line.slice(bar + 1).trim();
      return bar < 0 || name === "" || question === "" ? { name: line, question: line } : { name, question };
    });
}

/** What the server would refuse; null where nothing is. */
export function wrongOf(columns: readonly Column[]): Wrong | null {
  if (columns.length > MOST_COLUMNS) return { kind: "many", found: columns.length };
  const names = new Set<string>();
  for (const { name, question } of columns) {
    if (lengthOf(question) > MOST_QUESTION) return { kind: "longQuestion" };
    if (name !== question && lengthOf(name) > MOST_NAME) return { kind: "longName", name };
    if (names.has(name)) return { kind: "same", name };
    names.add(name);
  }
  return null;
}

/** The columns as the API takes them. */
export function questionsBody(columns: readonly Column[]): (string | Column)[] {
  return columns.map((column) => (column.name === column.question ? column.question : column));
}

/** The server counts code points. */
function lengthOf(text: string): number {
  return Array.from(text).length;
}
