/** Adding a text that is in the clipboard: a button with a field for it, and pasting on the screen itself. */
import { type FormEvent, useEffect, useEffectEvent, useId, useState } from "react";
import { t } from "../strings";
import { Dialog } from "../ui/Dialog";
import { isCovered } from "./dropping";
import { type Gathered, gatherChosen } from "./entries";
import { gatherText, LONG_TEXT } from "./pasted";

export function PasteText({ onFiles }: { onFiles: (gathered: Gathered) => void }) {
  const words = t.documents.paste;
  const [isOpen, setOpen] = useState(false);
  usePaste(onFiles);
  return (
    <>
      <button type="button" className="wide-only" onClick={() => setOpen(true)}>
        {words.button}
      </button>
      <Dialog title={words.title} open={isOpen} onClose={() => setOpen(false)}>
        <PasteForm
          onText={(text) => {
            setOpen(false);
            onFiles(gatherText(text, words.name));
          }}
        />
      </Dialog>
    </>
  );
}

function PasteForm({ onText }: { onText: (text: string) => void }) {
  const words = t.documents.paste;
  const id = useId();
  const [text, setText] = useState("");
  function submit(event: FormEvent) {
    event.preventDefault();
    if (text.trim() !== "") onText(text);
  }
  return (
    <form className="paste-text" onSubmit={submit}>
      <label htmlFor={id}>{words.label}</label>
      <textarea id={id} rows={12} value={text} onChange={(event) => setText(event.target.value)} />
      <p className="quiet small">{words.hint}</p>
      <button type="submit" className="primary" disabled={text.trim() === ""}>
        {words.add}
      </button>
    </form>
  );
}

/** Takes what is pasted while no field has the focus: files, or a long text. */
function usePaste(onFiles: (gathered: Gathered) => void) {
  const pasted = useEffectEvent(onFiles);
  useEffect(() => {
    const paste = (event: ClipboardEvent) => {
      if (event.clipboardData === null || isCovered() || isField(event.target)) return;
      const files = gatherChosen(event.clipboardData.files);
      const text = event.clipboardData.getData("text/plain");
      if (files.files.length > 0) pasted(files);
      else if (text.trim().length >= LONG_TEXT) pasted(gatherText(text, t.documents.paste.name));
      else return;
      event.preventDefault();
    };
    window.addEventListener("paste", paste);
    return () => window.removeEventListener("paste", paste);
  }, []);
}

function isField(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest("input, textarea, select, [contenteditable]") !== null;
}
