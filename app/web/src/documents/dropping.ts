import { useEffect, useEffectEvent, useState } from "react";
import { entriesOf, type Gathered, gatherDropped } from "./entries";

/** Takes files that are dropped anywhere in the window; whether some are held over it. While `resting`, another place on
 * the page takes them. */
export function useDrop(onFiles: (gathered: Gathered) => void, resting: () => boolean = () => false): boolean {
  const [isOver, setOver] = useState(false);
  const dropped = useEffectEvent(onFiles);
  const rests = useEffectEvent(resting);

  useEffect(() => {
    // Entering an element inside comes before leaving the one around it, so both are counted.
    let inside = 0;
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") === true;
    const enter = (event: DragEvent) => {
      if (!hasFiles(event) || isCovered() || rests()) return;
      event.preventDefault(); // or what is dropped before the next dragover is lost (HTML Standard, drag-and-drop processing model)
      inside += 1;
      setOver(true);
    };
    const leave = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      inside = Math.max(0, inside - 1);
      if (inside === 0) setOver(false);
    };
    const over = (event: DragEvent) => {
      if (!hasFiles(event) || event.dataTransfer === null || rests()) return;
      event.preventDefault();
      event.dataTransfer.dropEffect = isCovered() ? "none" : "copy";
    };
    const drop = (event: DragEvent) => {
      if (!hasFiles(event) || event.dataTransfer === null || rests()) return;
      event.preventDefault(); // or the browser would leave the page and open the file
      inside = 0;
      setOver(false);
      if (isCovered()) return;
      void gatherDropped(entriesOf(event.dataTransfer.items)).then(dropped);
    };
    const listeners = { dragenter: enter, dragleave: leave, dragover: over, drop } as const;
    for (const [name, listener] of Object.entries(listeners)) window.addEventListener(name as "drop", listener);
    return () => {
      for (const [name, listener] of Object.entries(listeners)) window.removeEventListener(name as "drop", listener);
    };
  }, []);

  return isOver;
}

/** A dialog lies over the screen: what is dropped there is not meant for what is behind it. */
export function isCovered(): boolean {
  return document.querySelector("dialog[open]") !== null;
}
