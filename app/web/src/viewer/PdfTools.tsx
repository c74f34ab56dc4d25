import { type FormEvent, type ReactNode, useEffect, useId, useState } from "react";
import { t } from "../strings";
import { nextStep, type Zoom } from "./zoom";

interface PdfToolsProps {
  page: number;
  pages: number;
  /** Of the real size. */
  share: number;
  zoom: Zoom;
  onPage: (page: number) => void;
  onZoom: (zoom: Zoom) => void;
  /** Absent where no passage is marked. */
  onPassage: (() => void) | undefined;
  children: ReactNode;
}

/** Which page is shown, how large, and the way back to the passage. */
export function PdfTools({ page, pages, share, zoom, onPage, onZoom, onPassage, children }: PdfToolsProps) {
  return (
    <section className="pdf-tools" aria-label={t.viewer.tools}>
      {children}
      <PageField page={page} pages={pages} onPage={onPage} />
      {onPassage !== undefined && (
        <button type="button" onClick={onPassage} aria-label={t.viewer.toPassage} title={t.viewer.toPassage}>
          {t.viewer.passage}
        </button>
      )}
      <span className="pdf-zoom">
        <button
          type="button"
          onClick={() => onZoom(nextStep(share, -1))}
          aria-label={t.viewer.zoomOut}
          title={t.viewer.zoomOut}
        >
          <span aria-hidden="true">−</span>
        </button>
        <output className="small">{t.viewer.zoom(share)}</output>
        <button
          type="button"
          onClick={() => onZoom(nextStep(share, 1))}
          aria-label={t.viewer.zoomIn}
          title={t.viewer.zoomIn}
        >
          <span aria-hidden="true">+</span>
        </button>
        <button
          type="button"
          aria-pressed={zoom === "fit"}
          onClick={() => onZoom("fit")}
          aria-label={t.viewer.fitWidth}
          title={t.viewer.fitWidth}
        >
          {t.viewer.fit}
        </button>
      </span>
    </section>
  );
}

function PageField({ page, pages, onPage }: Pick<PdfToolsProps, "page" | "pages" | "onPage">) {
  const id = useId();
  const [typed, setTyped] = useState(String(page));
  useEffect(() => setTyped(String(page)), [page]);

  function go(event: FormEvent) {
    event.preventDefault();
    const wanted = Math.round(Number(typed));
    if (Number.isFinite(wanted) && typed.trim() !== "") onPage(Math.min(Math.max(wanted, 1), pages));
    else setTyped(String(page));
  }

  return (
    <form className="pdf-page-field" onSubmit={go}>
      <label htmlFor={id}>
        <span className="pdf-label">{t.viewer.pageField}</span>
      </label>
      <input
        id={id}
        inputMode="numeric"
        autoComplete="off"
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
        onFocus={(event) => event.target.select()}
        onBlur={() => setTyped(String(page))}
      />
      <span className="quiet">{t.viewer.of(pages)}</span>
    </form>
  );
}
