import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it } from "vitest";
import type { Cell } from "./cells";
import { proseAndTables } from "./cells";
import { StructuredText } from "./StructuredText";
import { type Block, joinedBlocks, type StructuredPart, structured } from "./structure";

/** A number in [0, below) and the next seed: the same each time the tests run. */
function random(seed: number) {
  let state = seed;
  return (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const KINDS = ["heading", "paragraph", "list_item", "table_row", "caption", "code", "furniture"] as const;
const WORDS = [
  "Leave",
  "🐪 camel",
  "𝒜b",
  "3.",
  "two  blanks",
  "a | b",
  "Name: Ada | Days: 30",
  "e\u0301",
  "\u00a0",
  "- item",
];

/** A document of blocks with white space, and sometimes words, between them; no two of it are alike. */
function made(seed: number): { text: string; blocks: Block[] } {
  const next = random(seed);
  const blocks: Block[] = [];
  let text = "";
  const length = () => Array.from(text).length;
  for (let number = next(9); number >= 0; number -= 1) {
    text += ["", "\n", "\n\n", " ", "\n\nbetween\n"][next(5)] ?? "";
    const start = length();
    const words = Array.from({ length: 1 + next(4) }, () => WORDS[next(WORDS.length)] ?? "");
    text += words.join(next(4) === 0 ? "\n" : " ");
    const kind = KINDS[next(KINDS.length)] ?? "paragraph";
    blocks.push({ kind, start, end: length(), level: 1 + next(7) });
  }
  return { text: text + (next(3) === 0 ? "\nthe end" : ""), blocks };
}

/** All words that are shown, each with where it says that it stands. */
function leaves(parts: readonly StructuredPart[]): Cell[] {
  return parts.flatMap((part): Cell[] => {
    if (part.kind === "list") return part.items;
    if (part.kind !== "rows") return [part];
    return proseAndTables(part.text, part.start).flatMap((piece): Cell[] =>
      piece.kind === "prose"
        ? [piece]
        : [...(piece.names ?? []), ...piece.rows.flat()].filter((cell): cell is Cell => cell !== null),
    );
  });
}

const SEEDS = Array.from({ length: 300 }, (_, seed) => seed);

describe("structured text", () => {
  it("shows every character at its own offset, whatever the blocks are", () => {
    for (const seed of SEEDS) {
      const { text, blocks } = made(seed);
      const points = Array.from(text);
      const start = seed % 7 === 0 ? 0 : seed;
      const moved = blocks.map((one) => ({ ...one, start: one.start + start, end: one.end + start }));
      const parts = structured(text, start, moved);
      for (const { text: words, start: at } of leaves(parts)) {
        expect(points.slice(at - start, at - start + Array.from(words).length).join("")).toBe(words);
      }
      const shown = parts.flatMap((part) => (part.kind === "list" ? part.items : [part]));
      const left = shown.map((part) => part.text.replace(/\s/gu, "")).join("");
      expect(left, `all words of ${seed}`).toBe(text.replace(/\s/gu, ""));
    }
  });

  it("marks the same words that the text without structure marks", () => {
    for (const seed of SEEDS) {
      const next = random(seed + 1000);
      const { text, blocks } = made(seed);
      const plain = blocks.map((one) => (one.kind === "table_row" ? { ...one, kind: "paragraph" as const } : one));
      const points = Array.from(text);
      const from = next(points.length);
      const to = from + 1 + next(points.length - from);
      const html = renderToStaticMarkup(
        <StructuredText text={text} start={0} blocks={plain} marks={[{ start: from, end: to }]} />,
      );
      const marked = [...html.matchAll(/<mark>(.*?)<\/mark>/gs)].map(([, words]) => words).join("");
      expect(marked.replace(/\s/gu, "")).toBe(points.slice(from, to).join("").replace(/\s/gu, ""));
    }
  });

  it("shows headings, lists and tables as such", () => {
    const text = "Handbook\n\n3 Leave\n\nAsk early.\n\nfirst\n2. second\n\nWho | Days\nWho: Ada | Days: 30";
    const at = (words: string) => text.indexOf(words);
    const block = (kind: Block["kind"], words: string, level = 1): Block => ({
      kind,
      start: at(words),
      end: at(words) + words.length,
      level,
    });
    const html = renderToStaticMarkup(
      <StructuredText
        text={text}
        start={0}
        blocks={[
          block("heading", "Handbook"),
          block("heading", "3 Leave", 2),
          block("paragraph", "Ask early."),
          block("list_item", "first"),
          block("list_item", "2. second"),
          block("table_row", "Who | Days"),
          block("table_row", "Who: Ada | Days: 30"),
        ]}
        marks={[{ start: at("30"), end: at("30") + 2 }]}
      />,
    );
    expect(html).toContain('<h3 class="text-heading">Handbook</h3><h4 class="text-heading">3 Leave</h4>');
    expect(html).toContain('<ul class="text-list"><li>first</li><li class="numbered">2. second</li></ul>');
    expect(html).toContain('<th scope="col">Days</th>');
    expect(html).toContain('<td class="amount"><mark>30</mark></td>');
  });

  it("joins the blocks of slices, of which one was cut", () => {
    const cut: Block = { kind: "paragraph", start: 5, end: 20, level: 0 };
    const first: Block = { kind: "heading", start: 0, end: 4, level: 1 };
    expect(joinedBlocks([[cut], [first, cut]])).toEqual([first, cut]);
  });
});
