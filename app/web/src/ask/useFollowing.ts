/** Keeps the newest text in view while it is written, as long as the reader is at the end of it. */
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import type { Turn } from "./turn";

const NEAR_PX = 120;

export function useFollowing(last: Turn | undefined, running: boolean): { following: boolean; follow: () => void } {
  const [following, setFollowing] = useState(true);
  const at = useRef(0);
  const was = useRef(false);

  useEffect(() => {
    // Only a reader scrolls up: text that grows moves nothing, and what follows it moves down.
    function moved() {
      const up = window.scrollY < at.current;
      at.current = window.scrollY;
      if (isAtEnd()) setFollowing(true);
      else if (up) setFollowing(false);
    }
    at.current = window.scrollY;
    window.addEventListener("scroll", moved, { passive: true });
    return () => window.removeEventListener("scroll", moved);
  }, []);

  const written = last === undefined ? "" : `${last.key} ${last.state} ${last.text.length}`;
  // biome-ignore lint/correctness/useExhaustiveDependencies: whenever something is written
  useLayoutEffect(() => {
    // Also when it has ended: what comes below an answer belongs to it.
    if ((running || was.current) && following) toEnd();
    was.current = running;
  }, [written, running, following]);

  const follow = useCallback(() => {
    setFollowing(true);
    toEnd();
  }, []);
  return { following, follow };
}

function isAtEnd(): boolean {
  return window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - NEAR_PX;
}

function toEnd(): void {
  window.scrollTo({ top: document.documentElement.scrollHeight });
}
