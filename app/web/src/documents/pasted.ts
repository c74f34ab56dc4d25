/** Text that was pasted: an address, or a file to add. */
import type { Gathered } from "./entries";

/** A shorter text is more likely meant for a field. */
export const LONG_TEXT = 200;
/** The address that a text is, and nothing besides; null where it is another text. */
export function addressIn(text: string): string | null {
  const said = text.trim();
  if (!/^https?:\/\/\S+$/i.test(said) || !URL.canParse(said)) return null;
  return said;
}

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
