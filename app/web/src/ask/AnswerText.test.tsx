import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { AnswerText, safeHref } from "./AnswerText";
import type { Segment } from "./segments";

function shown(...segments: Segment[]): string {
  return renderToStaticMarkup(<AnswerText segments={segments} renderMark={(mark) => <b>{mark.number}</b>} />);
}

function text(text: string, uncited = false): Segment {
  return { kind: "text", text, uncited };
}

const MARK: Segment = { kind: "mark", number: 3, citation: 0 };

test("images, HTML and scripts are text or nothing, and load nothing", () => {
  const html = shown(
    text(
      "![pic](http://a.example/x.png) <img src=http://a.example/y.png onerror=alert(1)>\n\n<script>alert(1)</script>",
    ),
  );
  expect(html).not.toMatch(/<img|<script|<svg|<iframe/);
  expect(html).toContain("&lt;script&gt;");
});

test("links lead to the web or to mail, and say so", () => {
  expect(shown(text("[a](https://a.example/x)"))).toContain(
    '<a href="https://a.example/x" title="https://a.example/x" target="_blank" rel="noopener noreferrer">a</a>',
  );
  for (const href of [
    "javascript:alert(1)",
    "data:text/html,x",
    "vbscript:x",
    "file:///etc/passwd",
    "#/admin",
    "//a",
  ]) {
    expect(safeHref(href)).toBeNull();
    expect(shown(text(`[a](${href})`))).not.toContain("<a ");
  }
});

test("a mark within a link stands behind it", () => {
  expect(shown(text("[see "), MARK, text("](https://a.example/)"))).toContain("</a><b>3</b>");
});

test("marks stand in lists, tables and code", () => {
  const html = shown(text("- one "), MARK, text("\n\n| a |\n|---|\n| x "), MARK, text(" |\n\n`code "), MARK, text("`"));
  expect(html.match(/<b>3<\/b>/g)).toHaveLength(3);
  expect(html).toContain("<li>one<b>3</b></li>");
});

test("uncited text is marked through emphasis, and no further", () => {
  const html = shown(text("Known. "), text("Maybe **so** or not.", true), text(" Known again."));
  expect(html).toContain(
    '<span class="ask-uncited">Maybe </span><strong><span class="ask-uncited">so</span></strong><span class="ask-uncited"> or not.</span> Known again.',
  );
});

test("what is written in a raw answer is what is shown", () => {
  expect(shown(text("1 < 2 &amp; 3 &lt; 4 \\* 5"))).toContain("1 &lt; 2 &amp; 3 &lt; 4 * 5");
});

test("nesting without end ends", () => {
  expect(shown(text(`${">".repeat(3000)} deep`))).toContain("deep");
});
