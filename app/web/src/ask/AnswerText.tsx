/** An answer's Markdown as elements: an allow-list, made from tokens and never from HTML. Images are not loaded, HTML is
 * shown as the text it is, and links lead only to the web or to an address for mail. */
import { Marked, type Token, type Tokens } from "marked";
import { createElement, Fragment, type ReactNode, useMemo } from "react";
import type { Segment } from "./segments";
import { type Marked as MarkedText, piecesOf, withoutSentinels, withSentinels } from "./sentinels";

const reader = new Marked({ gfm: true });
const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'", nbsp: "\u00a0" };

type Mark = Extract<Segment, { kind: "mark" }>;

interface AnswerTextProps {
  segments: readonly Segment[];
  /** Whether something better follows. */
  doubted?: boolean;
  renderMark: (mark: Mark) => ReactNode;
}

export function AnswerText({ segments, doubted = false, renderMark }: AnswerTextProps) {
  const { text, tokens } = useMemo(() => {
    const text = withSentinels(segments);
    return { text, tokens: read(text.markdown) };
  }, [segments]);
  return <div className={doubted ? "ask-text doubted" : "ask-text"}>{new Writer(text, renderMark).blocks(tokens)}</div>;
}

/** Markdown that cannot be read, as when it is nested without end, is a text. */
function read(markdown: string): Token[] {
  try {
    return reader.lexer(markdown);
  } catch {
    return [
      { type: "paragraph", raw: markdown, text: markdown, tokens: [{ type: "text", raw: markdown, text: markdown }] },
    ];
  }
}

/** Writes one answer. Whether text is uncited goes on from piece to piece, through emphasis and links. */
class Writer {
  private uncited = false;
  private keys = 0;
  private held: ReactNode[] | null = null;

  constructor(
    private readonly marked: MarkedText,
    private readonly renderMark: (mark: Mark) => ReactNode,
  ) {}

  blocks(tokens: readonly Token[]): ReactNode[] {
    return tokens.map((token) => this.block(token));
  }

  private block(token: Token): ReactNode {
    this.uncited = false;
    switch (token.type) {
      case "space":
      case "def":
        return null;
      case "hr":
        return <hr key={this.key()} />;
      case "heading": {
        // The page has headings of its own above an answer's.
        const level = Math.min(6, (token as Tokens.Heading).depth + 3);
        return createElement(`h${level}`, { key: this.key() }, this.inline(token.tokens ?? []));
      }
      case "paragraph":
        return <p key={this.key()}>{this.inline(token.tokens ?? [])}</p>;
      case "blockquote":
        return <blockquote key={this.key()}>{this.blocks(token.tokens ?? [])}</blockquote>;
      case "code":
        return (
          // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
          <pre key={this.key()} tabIndex={0}>
            <code>{this.text((token as Tokens.Code).text)}</code>
          </pre>
        );
      case "list":
        return this.list(token as Tokens.List);
      case "table":
        return this.table(token as Tokens.Table);
      case "html":
        return <p key={this.key()}>{this.text(token.raw.trimEnd())}</p>;
      case "text":
        // A tight list's item: text without a paragraph.
        return <Fragment key={this.key()}>{this.inline(token.tokens ?? [token])}</Fragment>;
      default:
        return <Fragment key={this.key()}>{this.inline([token])}</Fragment>;
    }
  }

  private list(token: Tokens.List): ReactNode {
    const items = token.items.map((item) => <li key={this.key()}>{this.blocks(item.tokens)}</li>);
    return token.ordered ? (
      <ol key={this.key()} start={token.start === "" ? 1 : token.start}>
        {items}
      </ol>
    ) : (
      <ul key={this.key()}>{items}</ul>
    );
  }

  private table(token: Tokens.Table): ReactNode {
    const cells = (row: Tokens.TableCell[], Cell: "th" | "td") => {
      this.uncited = false;
      return (
        <tr key={this.key()}>
          {row.map((cell) => (
            <Cell key={this.key()}>{this.inline(cell.tokens)}</Cell>
          ))}
        </tr>
      );
    };
    return (
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
      <div key={this.key()} className="scroll-x" tabIndex={0}>
        <table>
          <thead>{cells(token.header, "th")}</thead>
          <tbody>{token.rows.map((row) => cells(row, "td"))}</tbody>
        </table>
      </div>
    );
  }

  private inline(tokens: readonly Token[]): ReactNode[] {
    return tokens.map((token) => this.span(token));
  }

  private span(token: Token): ReactNode {
    const inner = () => this.inline((token as Tokens.Generic).tokens ?? []);
    switch (token.type) {
      case "strong":
        return <strong key={this.key()}>{inner()}</strong>;
      case "em":
        return <em key={this.key()}>{inner()}</em>;
      case "del":
        return <del key={this.key()}>{inner()}</del>;
      case "codespan":
        return <code key={this.key()}>{this.text((token as Tokens.Codespan).text)}</code>;
      case "br":
        return <br key={this.key()} />;
      case "link":
        return this.link(token as Tokens.Link);
      case "checkbox":
        return (token as Tokens.Checkbox).checked ? "☑ " : "☐ ";
      case "image":
        return <Fragment key={this.key()}>{this.text((token as Tokens.Image).text)}</Fragment>;
      case "escape":
        return <Fragment key={this.key()}>{this.text((token as Tokens.Escape).text)}</Fragment>;
      case "text": {
        const { text, tokens } = token as Tokens.Text;
        const words = tokens === undefined ? this.text(decoded(text)) : this.inline(tokens);
        return <Fragment key={this.key()}>{words}</Fragment>;
      }
      default:
        return <Fragment key={this.key()}>{this.text(token.raw)}</Fragment>;
    }
  }

  private link(token: Tokens.Link): ReactNode {
    const href = safeHref(withoutSentinels(token.href, this.marked.sentinels));
    if (href === null) return <Fragment key={this.key()}>{this.inline(token.tokens)}</Fragment>;
    // A link holds no other: the marks within come behind it.
    const before = this.held;
    this.held = [];
    const words = this.inline(token.tokens);
    const marks = this.held;
    this.held = before;
    return (
      <Fragment key={this.key()}>
        <a href={href} title={href} target="_blank" rel="noopener noreferrer">
          {words}
        </a>
        {marks}
      </Fragment>
    );
  }

  private text(text: string): ReactNode[] {
    return piecesOf(text, this.marked.sentinels).map((piece) => {
      if ("uncited" in piece) {
        this.uncited = piece.uncited;
        return null;
      }
      if ("mark" in piece) {
        const mark = this.marked.marks[piece.mark];
        if (mark === undefined) return null;
        const shown = <Fragment key={this.key()}>{this.renderMark(mark)}</Fragment>;
        if (this.held === null) return shown;
        this.held.push(shown);
        return null;
      }
      if (!this.uncited) return piece.text;
      return (
        <span key={this.key()} className="ask-uncited">
          {piece.text}
        </span>
      );
    });
  }

  private key(): number {
    return this.keys++;
  }
}

/** An address a click may lead to: of the web or for mail, null for any other. */
export function safeHref(href: string): string | null {
  try {
    const url = new URL(href);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

function decoded(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|#39|nbsp);/g, (whole, name: string) => ENTITIES[name] ?? whole);
}
