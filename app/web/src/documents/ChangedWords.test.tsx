import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import type { Change } from "../api/types";
import { ChangedWords, isRewritten } from "./ChangedWords";

const WORD: Change[] = [
  { kind: "equal", text: "The notice period is " },
  { kind: "removed", text: "30 " },
  { kind: "added", text: "60 " },
  { kind: "equal", text: "days." },
];
const MOST: Change[] = [
  { kind: "removed", text: "Tenants may leave after " },
  { kind: "added", text: "Notice by either party takes " },
  { kind: "equal", text: "60 days." },
];

function shown(words: Change[], kind: "altered" | "moved" = "altered"): string {
  return renderToStaticMarkup(<ChangedWords change={{ kind, words }} text="Cards are welcome." old={1} now={2} />);
}

test("a passage of which a word differs stands in one line", () => {
  const html = shown(WORD);
  expect(html.match(/<blockquote/g)).toHaveLength(1);
  expect(html).toContain("<del>30 </del><ins>60 </ins>");
});

test("a passage that was rewritten stands in both wordings, each with its version and its own words", () => {
  const [before = "", now = ""] = shown(MOST).split("</figure>");
  expect(before).toContain("In version 1");
  expect(before).toContain("<del>Tenants may leave after </del><span>60 days.</span>");
  expect(now).toContain("In version 2");
  expect(now).toContain("<ins>Notice by either party takes </ins><span>60 days.</span>");
  expect(before).not.toContain("<ins>");
  expect(now).not.toContain("<del>");
});

test("what stands elsewhere word for word is shown once", () => {
  expect(shown([], "moved")).toContain("<span>Cards are welcome.</span>");
});

test("words that were only added or only left out need no second wording", () => {
  expect(isRewritten([{ kind: "added", text: "In writing, the notice period is " }, ...WORD.slice(3)])).toBe(false);
});
