import { Marked } from "marked";
import { expect, test } from "vitest";
import { type Segment, segmentsOf } from "./segments";
import { piecesOf, withoutSentinels, withSentinels } from "./sentinels";

const marked = new Marked({ gfm: true });

function uncited(text: string): Segment[] {
  return [{ kind: "text", text, uncited: true }];
}

test("a mark comes out of Markdown where it went in", () => {
  const { markdown, sentinels, marks } = withSentinels(
    segmentsOf("**Ships** sail [7].", [{ index: 7, answer_start: 15, answer_end: 18 }]),
  );
  expect(marks).toEqual([{ kind: "mark", number: 7, citation: 0 }]);
  expect(piecesOf(markdown, sentinels)).toEqual([{ text: "**Ships** sail" }, { mark: 0 }, { text: "." }]);
});

test("emphasis is what it was, also next to marks", () => {
  const { markdown, sentinels } = withSentinels([
    { kind: "text", text: "_Ships_ sail **far**", uncited: true },
    { kind: "mark", number: 1, citation: 0 },
  ]);
  const html = marked.parse(markdown) as string;
  expect(withoutSentinels(html, sentinels)).toBe("<p><em>Ships</em> sail <strong>far</strong></p>\n");
});

test("uncited lists, headings, quotes, tables and fences stay what they are", () => {
  const text = "# Head\n\n- one\n- two\n\n1. first\n\n> said\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```\ncode\n```";
  const { markdown, sentinels } = withSentinels(uncited(text));
  expect(withoutSentinels(marked.parse(markdown) as string, sentinels)).toBe(marked.parse(text));
});

test("an address does not go on into a mark", () => {
  const { markdown } = withSentinels([
    { kind: "text", text: "See https://example.org/a", uncited: false },
    { kind: "mark", number: 1, citation: 0 },
  ]);
  expect(marked.parse(markdown) as string).toContain('href="https://example.org/a"');
});

test("characters of the text that would be sentinels are left to it", () => {
  const { markdown, sentinels } = withSentinels([
    { kind: "text", text: "An edition's ⸀ and ⸁ signs.", uncited: false },
    { kind: "mark", number: 1, citation: 0 },
  ]);
  expect(markdown).toContain("An edition's ⸀ and ⸁ signs.");
  expect(sentinels.open).toBe("⸂");
});

test("a line that goes on is marked from its first word", () => {
  const { markdown, sentinels } = withSentinels([
    { kind: "text", text: "Known. ", uncited: false },
    { kind: "text", text: "1. is not a list here", uncited: true },
  ]);
  expect(piecesOf(markdown, sentinels)).toEqual([
    { text: "Known. " },
    { uncited: true },
    { text: "1. is not a list here" },
    { uncited: false },
  ]);
});
