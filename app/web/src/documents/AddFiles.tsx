/** Adding files: two buttons, and the whole window as a place to drop them on. */
import { useEffect, useEffectEvent, useId, useRef, useState } from "react";
import type { Collection } from "../api/types";
import { t } from "../strings";
import "./addFiles.css";
import { entriesOf, type Gathered, gatherChosen, gatherDropped } from "./entries";

interface AddFilesProps {
  into: Collection | null;
  /** The collections to choose from; `null` where the screen shows one. */
  choices: readonly Collection[] | null;
  onTarget: (id: string) => void;
  onFiles: (gathered: Gathered) => void;
}

export function AddFiles({ into, choices, onTarget, onFiles }: AddFilesProps) {
  const files = useRef<HTMLInputElement>(null);
  const folder = useRef<HTMLInputElement>(null);
  const id = useId();
  const isOver = useDrop(onFiles);
  const words = t.documents;

  useEffect(() => {
    // React knows no attribute of this name.
    if (folder.current !== null) folder.current.webkitdirectory = true;
  }, []);

  function chosen(input: HTMLInputElement) {
    onFiles(gatherChosen(input.files ?? []));
    input.value = ""; // so that the same file can be chosen again
  }

  return (
    <div className="row add-files">
      {choices !== null && (
        <span className="add-to">
          <label htmlFor={id}>{words.addTo}</label>
          <select id={id} value={into?.id ?? ""} onChange={(event) => onTarget(event.target.value)}>
            {choices.map((one) => (
              <option key={one.id} value={one.id}>
                {one.name}
              </option>
            ))}
          </select>
        </span>
      )}
      <button type="button" className="primary" onClick={() => files.current?.click()}>
        {words.add}
      </button>
      <button type="button" className="wide-only" onClick={() => folder.current?.click()}>
        {words.addFolder}
      </button>
      <input
        ref={files}
        type="file"
        multiple
        hidden
        aria-label={words.add}
        onChange={(event) => chosen(event.currentTarget)}
      />
      <input
        ref={folder}
        type="file"
        hidden
        aria-label={words.addFolder}
        onChange={(event) => chosen(event.currentTarget)}
      />
      {isOver && (
        <div className="drop-here" aria-hidden="true">
          <div>
            <strong>{words.dropHere}</strong>
            {into !== null && <span>{words.dropInto(into.name)}</span>}
          </div>
        </div>
      )}
    </div>
  );
}

/** Takes files that are dropped anywhere in the window; whether some are held over it. */
function useDrop(onFiles: (gathered: Gathered) => void): boolean {
  const [isOver, setOver] = useState(false);
  const dropped = useEffectEvent(onFiles);

  useEffect(() => {
    // Entering an element inside comes before leaving the one around it, so both are counted.
    let inside = 0;
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") === true;
    const enter = (event: DragEvent) => {
      if (!hasFiles(event) || isCovered()) return;
      inside += 1;
      setOver(true);
    };
    const leave = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      inside = Math.max(0, inside - 1);
      if (inside === 0) setOver(false);
    };
    const over = (event: DragEvent) => {
      if (!hasFiles(event) || event.dataTransfer === null) return;
      event.preventDefault();
      event.dataTransfer.dropEffect = isCovered() ? "none" : "copy";
    };
    const drop = (event: DragEvent) => {
      if (!hasFiles(event) || event.dataTransfer === null) return;
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
function isCovered(): boolean {
  return document.querySelector("dialog[open]") !== null;
}
