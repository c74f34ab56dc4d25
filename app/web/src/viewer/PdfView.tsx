import { type ReactNode, type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import { t } from "../strings";
import { PdfPage } from "./PdfPage";
import { PdfTools } from "./PdfTools";
import { pageInSight, useNear } from "./useNear";
import type { PageMarks } from "./usePassage";
import type { Opened } from "./usePdf";
import { useWidth } from "./useWidth";
import { pixelsAPoint, reach, type Size, shareOf, type Zoom } from "./zoom";

/** Pixels left free beside what is brought into sight. */
const SOME_ROOM = 8;

interface PdfViewProps {
  opened: Opened;
  /** What is marked; `undefined` until that is known, or where there is no passage. */
  marks: readonly PageMarks[] | undefined;
  /** The passage around it, marked lightly. */
  around: readonly PageMarks[] | undefined;
  /** What is shown first where no passage is marked. */
  page: number | null;
  /** Stands first among the tools. */
  children: ReactNode;
}

/** A place on a page: how far down, and from where to where across, as shares of its height and width. */
interface Target {
  page: number;
  down: number;
  left: number;
  right: number;
}

/** The pages of a PDF, one below the other, drawn as they come into sight; the passage is marked and in sight first. */
export function PdfView({ opened: { pdf, size: usual }, marks, around, page, children }: PdfViewProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const room = useWidth(scroller);
  const near = useNear(scroller, pdf.numPages);
  const [sizes, setSizes] = useState<ReadonlyMap<number, Size>>(new Map());
  const [zoom, setZoom] = useState<Zoom>("passage");
  const [inSight, setInSight] = useState(1);
  const target = targetOf(marks, around, page, pdf.numPages);
  const fitted = sizes.get(target?.page ?? inSight) ?? usual;
  const passage = target === null ? 0 : (target.right - target.left) * fitted.width;
  const scale = pixelsAPoint(zoom, fitted, room || usual.width, passage);
  const numbers = Array.from({ length: pdf.numPages }, (_, at) => at + 1);

  const onSize = useCallback((number: number, size: Size) => {
    setSizes((known) => {
      const before = known.get(number);
      if (before?.width === size.width && before.height === size.height) return known;
      return new Map(known).set(number, size);
    });
  }, []);

  const show = useCallback(({ page: number, down, left, right }: Target) => {
    const room = scroller.current;
    const section = room?.querySelector<HTMLElement>(`[data-page="${number}"]`);
    if (!room || !section) return;
    room.scrollTop = section.offsetTop + down * section.offsetHeight - (down > 0 ? room.clientHeight * 0.3 : SOME_ROOM);
    const wide = (right - left) * section.offsetWidth;
    const beside = Math.max((room.clientWidth - wide) / 2, SOME_ROOM);
    room.scrollLeft = section.offsetLeft + left * section.offsetWidth - beside;
  }, []);

  const moved = useKeptInSight(target, scale, sizes.get(target?.page ?? 0), room > 0, show, scroller);

  useEffect(() => {
    const room = scroller.current;
    if (room === null) return;
    const look = () => setInSight((before) => pageInSight(room, near) ?? before);
    look();
    room.addEventListener("scroll", look, { passive: true });
    return () => room.removeEventListener("scroll", look);
  }, [near]);

  return (
    <div className="pdf-view">
      <PdfTools
        page={inSight}
        pages={pdf.numPages}
        share={shareOf(scale)}
        zoom={zoom}
        onPage={(number) => {
          moved();
          show({ page: number, down: 0, left: 0, right: 1 });
        }}
        onZoom={setZoom}
        onPassage={target !== null && target.down > 0 ? () => show(target) : undefined}
      >
        {children}
      </PdfTools>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <section className="pdf-scroll" ref={scroller} tabIndex={0} aria-label={t.viewer.asPages}>
        {numbers.map((number) => (
          <PdfPage
            key={number}
            pdf={pdf}
            number={number}
            size={sizes.get(number) ?? usual}
            scale={scale}
            near={near.has(number)}
            marks={marks?.find((one) => one.page === number)}
            around={around?.find((one) => one.page === number)}
            onSize={onSize}
          />
        ))}
      </section>
    </div>
  );
}

/** Keeps what is looked for in sight while pages find their sizes, until the reader moves; then what is in sight stays
 * there when the size changes. Returns what says that the reader moved. */
function useKeptInSight(
  target: Target | null,
  scale: number,
  size: Size | undefined,
  ready: boolean,
  show: (target: Target) => void,
  scroller: RefObject<HTMLElement | null>,
): () => void {
  const movedFrom = useRef<string | null>(null);
  const drawnAt = useRef(scale);
  const name = target === null ? "" : `${target.page} ${target.down} ${target.left}`;

  const moved = useCallback(() => {
    movedFrom.current = name;
  }, [name]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: `name` says what `target` is; another size moves it
  useLayoutEffect(() => {
    const room = scroller.current;
    if (!ready || room === null) return;
    if (movedFrom.current !== name) {
      if (target !== null) show(target);
    } else if (drawnAt.current !== scale) {
      const ratio = scale / drawnAt.current;
      room.scrollTop *= ratio;
      room.scrollLeft *= ratio;
    }
    drawnAt.current = scale;
  }, [name, scale, size, ready, show]);

  useEffect(() => {
    const room = scroller.current;
    if (room === null) return;
    const ways = ["wheel", "pointerdown", "touchmove", "keydown"] as const;
    for (const way of ways) room.addEventListener(way, moved, { passive: true });
    return () => {
      for (const way of ways) room.removeEventListener(way, moved);
    };
  }, [scroller, moved]);

  return moved;
}

/** The first of what is marked; as wide as the passage around it on that page. */
function targetOf(
  marks: readonly PageMarks[] | undefined,
  around: readonly PageMarks[] | undefined,
  page: number | null,
  pages: number,
): Target | null {
  for (const found of marks ?? []) {
    const [first] = found.boxes;
    if (first !== undefined) {
      const beside = around?.find((one) => one.page === found.page)?.boxes ?? [];
      const [left, right] = reach([...found.boxes, ...beside]);
      return {
        page: found.page,
        down: first[1] / found.height,
        left: left / found.width,
        right: right / found.width,
      };
    }
  }
  const number = marks?.[0]?.page ?? page;
  return number === null ? null : { page: Math.min(number, pages), down: 0, left: 0, right: 1 };
}
