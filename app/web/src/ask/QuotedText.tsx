/** What documents say and no model wrote: as it stands there, whatever Markdown would make of it. */
import { Fragment, type ReactNode } from "react";
import { t } from "../strings";
import { paragraphsOf, type Segment } from "./segments";

interface QuotedTextProps {
  segments: readonly Segment[];
  /** Whether it stands behind an answer that nothing confirms. */
  instead: boolean;
  renderMark: (mark: Extract<Segment, { kind: "mark" }>) => ReactNode;
}

export function QuotedText({ segments, instead, renderMark }: QuotedTextProps) {
  const words = t.ask.turn;
  return (
    <figure className="ask-text ask-quoted">
      <figcaption className="quiet small">{instead ? words.quotedInstead : words.quoted}</figcaption>
      <blockquote>
        {paragraphsOf(segments).map((paragraph, number) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: paragraphs do not change places
          <p key={number}>
            {paragraph.map((segment, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: nor do their pieces
              <Fragment key={at}>{segment.kind === "mark" ? renderMark(segment) : segment.text.trimEnd()}</Fragment>
            ))}
          </p>
        ))}
      </blockquote>
    </figure>
  );
}
