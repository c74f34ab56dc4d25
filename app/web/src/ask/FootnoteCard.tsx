/** The passage of a footnote, at its mark: while the mark is pointed at or has the focus, or the card itself is. */
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import { createPortal } from "react-dom";
import type { Citation } from "../api/types";
import { t } from "../strings";
import { MarkedText } from "../viewer/MarkedText";
import { Confirmation } from "./Confirmation";
import type { Standing } from "./parts";
import { pageWords } from "./places";

export interface Previewed {
  citation: Citation;
  standing: Standing;
  mark: HTMLElement;
  /** Milliseconds until it is shown. */
  delay: number;
  /** Set once the mark was left: milliseconds until it goes. */
  leaving?: number;
}

const EDGE_PX = 8;

interface FootnoteCardProps {
  id: string;
  previewed: Previewed;
  onHide: () => void;
}

export function FootnoteCard({ id, previewed, onHide }: FootnoteCardProps) {
  const { citation, standing, mark, delay, leaving } = previewed;
  const words = t.ask.footnote;
  const card = useRef<HTMLDivElement>(null);
  const [shown, setShown] = useState<Citation | null>(delay === 0 ? citation : null);
  const [held, setHeld] = useState(false);
  const visible = shown === citation;

  useEffect(() => {
    const timer = window.setTimeout(() => setShown(citation), delay);
    return () => window.clearTimeout(timer);
  }, [citation, delay]);

  useEffect(() => {
    if (leaving === undefined || held) return;
    const timer = window.setTimeout(onHide, leaving);
    return () => window.clearTimeout(timer);
  }, [leaving, held, onHide]);

  useEffect(() => {
    function onKey(event: KeyboardEvent) {
      if (event.key === "Escape") onHide();
    }
    window.addEventListener("keydown", onKey);
    window.addEventListener("scroll", onHide, { passive: true });
    window.addEventListener("resize", onHide);
    return () => {
      window.removeEventListener("keydown", onKey);
      window.removeEventListener("scroll", onHide);
      window.removeEventListener("resize", onHide);
    };
  }, [onHide]);

  useLayoutEffect(() => {
    const box = card.current;
    if (!visible || box === null) return;
    const at = mark.getBoundingClientRect();
    const left = Math.min(at.left - 16, window.innerWidth - box.offsetWidth - EDGE_PX);
    const below = at.bottom + EDGE_PX;
    const fits = below + box.offsetHeight < window.innerHeight - EDGE_PX;
    box.style.left = `${Math.max(EDGE_PX, left)}px`;
    box.style.top = `${fits ? below : Math.max(EDGE_PX, at.top - box.offsetHeight - EDGE_PX)}px`;
  }, [visible, mark]);

  if (!visible) return null;
  const page = pageWords(citation);
  return createPortal(
    <div
      ref={card}
      id={id}
      className="ask-card"
      role="tooltip"
      onPointerEnter={() => setHeld(true)}
      onPointerLeave={onHide}
    >
      <blockquote>
        <MarkedText text={citation.cited_text} start={citation.start_char} />
      </blockquote>
      <p className="small">
        <strong>{citation.filename}</strong>
        {page !== "" && <span className="quiet"> · {page}</span>}
      </p>
      <Confirmation citation={citation} standing={standing} />
      {standing !== "gone" && <p className="quiet small">{words.open}</p>}
    </div>,
    document.body,
  );
}
