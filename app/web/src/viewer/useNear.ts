/** Which pages are in sight of a scrolling element, or within its height of it. */
import { type RefObject, useEffect, useState } from "react";

export function useNear(scroller: RefObject<HTMLElement | null>, count: number): ReadonlySet<number> {
  const [near, setNear] = useState<ReadonlySet<number>>(new Set([1]));
  // biome-ignore lint/correctness/useExhaustiveDependencies: as many pages as there are in the element
  useEffect(() => {
    const room = scroller.current;
    if (room === null) return;
    const observer = new IntersectionObserver(
      (entries) =>
        setNear((before) => {
          const after = new Set(before);
          for (const { target, isIntersecting } of entries) {
            const number = numberOf(target);
            if (isIntersecting) after.add(number);
            else after.delete(number);
          }
          return after;
        }),
      { root: room, rootMargin: "100% 0px" },
    );
    for (const page of room.querySelectorAll("[data-page]")) observer.observe(page);
    return () => observer.disconnect();
  }, [scroller, count]);
  return near;
}

/** The page that a reader of a scrolling element looks at: the one a third of the way down. */
export function pageInSight(room: HTMLElement, near: ReadonlySet<number>): number | null {
  const eye = room.scrollTop + room.clientHeight / 3;
  let found: number | null = null;
  for (const page of room.querySelectorAll<HTMLElement>("[data-page]")) {
    const number = numberOf(page);
    if (near.has(number) && page.offsetTop <= eye) found = number;
    if (page.offsetTop > eye) break;
  }
  return found;
}

function numberOf(page: Element): number {
  return Number(page.getAttribute("data-page"));
}
