import { memo, useEffect, useRef, useState } from "react";
import { t } from "../strings";
import type { PDFDocumentProxy, PDFPageProxy } from "./pdf";
import type { PageMarks } from "./usePassage";
import { boxStyle, type Size, sharpness } from "./zoom";

interface PdfPageProps {
  pdf: PDFDocumentProxy;
  number: number;
  /** In points: the page's own where it is known, else what the others have. */
  size: Size;
  /** Pixels a point. */
  scale: number;
  /** Whether it is in sight, or nearly: others are blank. */
  near: boolean;
  marks: PageMarks | undefined;
  /** The passage around the marks. */
  around: PageMarks | undefined;
  onSize: (number: number, size: Size) => void;
}

/** One page: its picture, its text over it to select, and the passage marked on it. */
export const PdfPage = memo(function PdfPage({ pdf, number, size, scale, near, marks, around, onSize }: PdfPageProps) {
  const page = usePage(pdf, number, near, onSize);
  const shown = { width: Math.floor(size.width * scale), height: Math.floor(size.height * scale) };
  return (
    <section className="pdf-page" data-page={number} aria-label={t.viewer.page(number)} style={shown}>
      {page !== null && near && (
        <>
          <Picture page={page} scale={scale} />
          <Words page={page} scale={scale} />
        </>
      )}
      <div className="pdf-boxes" aria-hidden="true">
        {around?.boxes.map((box) => (
          <div key={`around ${box.join()}`} className="pdf-around" style={boxStyle(box, around)} />
        ))}
        {marks?.boxes.map((box) => (
          <div key={box.join()} className="pdf-box" style={boxStyle(box, marks)} />
        ))}
      </div>
    </section>
  );
});

function usePage(pdf: PDFDocumentProxy, number: number, near: boolean, onSize: PdfPageProps["onSize"]) {
  const [page, setPage] = useState<PDFPageProxy | null>(null);
  useEffect(() => {
    if (!near) return;
    let gone = false;
    pdf
      .getPage(number)
      .then((found) => {
        if (gone) return;
        const { width, height } = found.getViewport({ scale: 1 });
        onSize(number, { width, height });
        setPage(found);
      })
      .catch(() => {
        // A page that is broken stays blank; its number is there, and the others can be read.
      });
    return () => {
      gone = true;
    };
  }, [pdf, number, near, onSize]);
  return page;
}

function Picture({ page, scale }: { page: PDFPageProxy; scale: number }) {
  const place = useRef<HTMLDivElement>(null);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    const viewport = page.getViewport({ scale });
    const sharp = sharpness(viewport, window.devicePixelRatio);
    // A canvas of its own each time: two tasks must not draw on one, and the old picture stays until the new is done.
    const canvas = document.createElement("canvas");
    canvas.width = Math.floor(viewport.width * sharp);
    canvas.height = Math.floor(viewport.height * sharp);
    const task = page.render({ canvas, viewport, transform: [sharp, 0, 0, sharp, 0, 0] });
    task.promise
      .then(() => {
        setFailed(false);
        place.current?.replaceChildren(canvas);
      })
      .catch((error: unknown) => {
        if (!(error instanceof Error && error.name === "RenderingCancelledException")) setFailed(true);
      });
    return () => task.cancel();
  }, [page, scale]);
  return (
    <>
      <div className="pdf-picture" ref={place} aria-hidden="true" />
      {failed && <p className="pdf-failed">{t.viewer.drawFailed}</p>}
    </>
  );
}

function Words({ page, scale }: { page: PDFPageProxy; scale: number }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const container = document.createElement("div");
    container.className = "textLayer";
    container.style.setProperty("--total-scale-factor", String(scale));
    let cancel: (() => void) | null = null;
    let gone = false;
    void import("./pdf").then(({ textLayer }) => {
      if (gone) return;
      const layer = textLayer(page, container, scale);
      cancel = () => layer.cancel();
      layer.render().then(
        () => place.current?.replaceChildren(container),
        () => {
          // Cancelled, or text that cannot be read: the picture is there.
        },
      );
    });
    return () => {
      gone = true;
      cancel?.();
    };
  }, [page, scale]);
  return <div ref={place} className="pdf-words" />;
}
