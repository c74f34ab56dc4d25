/** Adding files: two buttons, and the whole window as a place to drop them on. */
import { useEffect, useId, useRef } from "react";
import type { Collection } from "../api/types";
import { t } from "../strings";
import "./addFiles.css";
import { useDrop } from "./dropping";
import { type Gathered, gatherChosen } from "./entries";
import { PasteText } from "./PasteText";

interface AddFilesProps {
  into: Collection | null;
  /** The collections to choose from; `null` where the screen shows one. */
  choices: readonly Collection[] | null;
  onTarget: (id: string) => void;
  onFiles: (gathered: Gathered) => void;
  /** A document was made of an address. */
  onAddress?: () => void;
}

export function AddFiles({ into, choices, onTarget, onFiles, onAddress = () => {} }: AddFilesProps) {
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
      <PasteText collectionId={into?.id ?? null} onFiles={onFiles} onAddress={onAddress} />
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
