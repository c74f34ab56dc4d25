/** Text that was pasted, as a file to add. */
import type { Gathered } from "./entries";

/** A shorter text is more likely meant for a field. */
export const LONG_TEXT = 200;
const NAME_LETTERS = 48;

/** The name of a pasted text: its first words. */
export function nameOf(text: string, fallback: string): string {
  const line = text.trim().split("\n", 1)[0] ?? "";
  const words = line
    .replace(/[^\p{L}\p{N}\s'’-]/gu, " ")
    .replace(/\s+/g, " ")
    .trim();
  if (words === "") return `${fallback}.txt`;
  const cut = words.length <= NAME_LETTERS ? words : words.slice(0, NAME_LETTERS).replace(/\s\S*$/, "");
  return `${cut}.txt`;
}

export function gatherText(text: string, fallback: string): Gathered {
  const name = nameOf(text, fallback);
  const file = new File([text], name, { type: "text/plain" });
  return { files: [{ file, path: name }], leftOut: 0, unreadable: [] };
}
