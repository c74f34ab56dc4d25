import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import type { Citation } from "../api/types";
import { t } from "../strings";
import { Lead, Quotations } from "./Quotations";
import type { Segment } from "./segments";

const MARK: Segment = { kind: "mark", number: 2, citation: 0 };
const CITATION: Citation = {
  index: 2,
  answer_start: 9,
  answer_end: 12,
  document_id: "doc_1",
  version: 1,
  filename: "report.pdf",
  chunk_id: "chk_1",
  page_start: 19,
  page_end: 19,
  start_char: 10,
  end_char: 40,
  cited_text: "It had 2,319 hours.",
  verified: true,
  support: 1,
  answers: 0.9,
  origin: "attributed",
};

function shown(fields: Partial<Citation> = {}, texts: Segment[] = [text("It had "), text("2,319", true)]): string {
  return renderToStaticMarkup(
    <Quotations
      quotes={[[...texts, MARK]]}
      citations={[{ ...CITATION, ...fields }]}
      renderMark={(mark) => <b>{mark.number}</b>}
      onOpen={null}
    />,
  );
}

function text(text: string, marked = false): Segment {
  return { kind: "text", text, uncited: false, marked };
}

test("the words that answer are marked in the sentence, and stand large in the lead", () => {
  expect(shown()).toContain("It had <mark>2,319</mark><b>2</b></blockquote>");
  const lead = renderToStaticMarkup(
    <Lead segments={[text("2,319", true), MARK]} renderMark={(mark) => <b>{mark.number}</b>} />,
  );
  expect(lead).toContain("<strong>2,319</strong><b>2</b>");
});

test("a document's signs are no Markdown and no HTML", () => {
  const words = "> *rather* than _youth_ <i>x</i> | y | [a](https://a.example)";
  const html = shown({}, [text(words)]);
  expect(html).toContain(`>${words.replaceAll("<", "&lt;").replaceAll(">", "&gt;")}<b>`);
  expect(html).not.toContain("<i>");
});

test("rows are a table, below the names of their columns, with the words that answer marked", () => {
  const html = shown({}, [
    text("| Part | Price |\n| --- | --- |\n| Bolt | "),
    text("3 EUR", true),
    text(" |\n| *Nut* | <i>4</i> |"),
  ]);
  expect(html).toContain('<th scope="col">Part</th><th scope="col">Price</th></tr></thead>');
  expect(html).toContain("<tr><td>Bolt</td><td><mark>3 EUR</mark></td></tr>");
  expect(html).toContain("<tr><td>*Nut*</td><td>&lt;i&gt;4&lt;/i&gt;</td></tr>");
  expect(html).toContain("</table><b>2</b></blockquote>");
});

test("a confirmed quote says so, with file and page", () => {
  const html = shown();
  expect(html).toContain(">report.pdf, page 19</a>");
  expect(html).toContain("badge good");
  expect(html).toContain(t.ask.footnote.confirmed);
});

test("of another it is said that it stands there word for word, without a green mark or a percentage", () => {
  const html = shown({ verified: false });
  expect(html).toContain(">report.pdf</a>");
  expect(html).toContain("Word for word on page 19");
  expect(html).not.toMatch(/good|warn|%/);
  expect(html).not.toContain(t.ask.footnote.confirmed);
  const unpaged = shown({ verified: false, filename: "notes.md", page_start: null, page_end: null });
  expect(unpaged).toContain(">Word for word in notes.md</a>");
});
