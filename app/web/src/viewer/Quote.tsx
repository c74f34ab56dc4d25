import { t } from "../strings";

/** The words of the passage, and on which pages they stand. */
export function Quote({ text, pages }: { text: string; pages: string | null }) {
  return (
    <figure className="quote">
      <figcaption className="small quiet">
        {t.viewer.quote}
        {pages !== null && ` · ${pages}`}
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a long one scrolls, which must be possible by keyboard */}
      <blockquote dir="auto" tabIndex={0}>
        {text}
      </blockquote>
    </figure>
  );
}
