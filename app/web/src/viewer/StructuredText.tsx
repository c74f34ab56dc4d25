import { createElement, useMemo } from "react";
import { MarkedText, type Marks, Words } from "./MarkedText";
import { type Block, type StructuredPart, structured } from "./structure";

interface StructuredTextProps extends Marks {
  text: string;
  /** Where the text begins in its document, in code points. */
  start: number;
  blocks: readonly Block[];
}

/** A document's text with its headings, lists and tables, and what is marked in it. */
export function StructuredText({ text, start, blocks, ...marks }: StructuredTextProps) {
  const parts = useMemo(() => structured(text, start, blocks), [text, start, blocks]);
  return parts.map((part) => <Part key={part.start} part={part} {...marks} />);
}

const NUMBERED = /^(?:\d{1,4}\.){1,6}\d{0,4}[ \t]|^(?:\d{1,4}|[a-z])[.)][ \t]/;
/** Under the name of the document. */
const ABOVE = 2;
const DEEPEST = 6;

function Part({ part, ...marks }: { part: StructuredPart } & Marks) {
  switch (part.kind) {
    case "heading":
      return createElement(
        `h${Math.min(part.level + ABOVE, DEEPEST)}`,
        { className: "text-heading" },
        <Words cell={part} {...marks} />,
      );
    case "list":
      return (
        <ul className="text-list">
          {part.items.map((item) => (
            <li key={item.start} className={NUMBERED.test(item.text) ? "numbered" : undefined}>
              <Words cell={item} {...marks} />
            </li>
          ))}
        </ul>
      );
    case "rows":
      return (
        <div className="scroll-x text-rows">
          <MarkedText text={part.text} start={part.start} {...marks} />
        </div>
      );
    case "code":
      return (
        <pre className="text-code">
          <Words cell={part} {...marks} />
        </pre>
      );
    default:
      return (
        <p className={`text-${part.kind}`}>
          <Words cell={part} {...marks} />
        </p>
      );
  }
}
