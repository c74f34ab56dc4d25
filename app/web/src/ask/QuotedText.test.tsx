import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { t } from "../strings";
import { QuotedText } from "./QuotedText";
import type { Segment } from "./segments";

const MARK: Segment = { kind: "mark", number: 2, citation: 0 };

function shown(text: string, instead = true): string {
  const segments: Segment[] = [{ kind: "text", text, uncited: false }, MARK];
  return renderToStaticMarkup(
    <QuotedText segments={segments} instead={instead} renderMark={(mark) => <b>{mark.number}</b>} />,
  );
}

test("a document's signs are no Markdown", () => {
  const words = "reflect ``irreparable corruption'' *rather* than _youth_ <i>x</i> | y | [a](https://a.example)";
  expect(shown(`> ${words} `)).toContain(
    `<p>${words.replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("'", "&#x27;")}<b>2</b></p>`,
  );
});

test("it says whether it stands for an answer that nothing confirms", () => {
  expect(shown("Ships.")).toContain(t.ask.turn.quotedInstead);
  expect(shown("Ships.", false)).toContain(t.ask.turn.quoted);
});
