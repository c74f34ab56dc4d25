/** Adding what is in the clipboard, a text or an address: a button with a field for it, and pasting on the screen. */
import { type FormEvent, useEffect, useEffectEvent, useId, useState } from "react";
import { useSession } from "../session/session";
import { t } from "../strings";
import { Dialog } from "../ui/Dialog";
import { ProblemNote } from "../ui/ProblemNote";
import { isCovered } from "./dropping";
import { type Gathered, gatherChosen } from "./entries";
import { addressIn, gatherText, LONG_TEXT } from "./pasted";
import { addAddress } from "./server";
import { useUploads } from "./UploadProvider";

interface PasteTextProps {
  /** The collection that an address is added to; null for the one every tenant begins with. */
  collectionId: string | null;
  onFiles: (gathered: Gathered) => void;
  onAddress: () => void;
}

export function PasteText({ collectionId, onFiles, onAddress }: PasteTextProps) {
  const words = t.documents.paste;
  const { web_pages: fetches } = useSession();
  const uploads = useUploads();
  /** What the field of the dialog begins with; null while it is closed. */
  const [begun, setBegun] = useState<string | null>(null);
  usePaste(onFiles, fetches ? setBegun : null);

  async function add(text: string) {
    const url = fetches ? addressIn(text) : null;
    if (url === null) onFiles(gatherText(text, words.name));
    else uploads.follow(await addAddress(url, collectionId));
    setBegun(null);
    if (url !== null) onAddress();
  }

  return (
    <>
      <button type="button" className="wide-only" onClick={() => setBegun("")}>
        {fetches ? words.buttonFetches : words.button}
      </button>
      <Dialog title={fetches ? words.titleFetches : words.title} open={begun !== null} onClose={() => setBegun(null)}>
        <PasteForm begun={begun ?? ""} fetches={fetches} onAdd={add} />
      </Dialog>
    </>
  );
}

interface PasteFormProps {
  begun: string;
  fetches: boolean;
  onAdd: (text: string) => Promise<void>;
}

function PasteForm({ begun, fetches, onAdd }: PasteFormProps) {
  const words = t.documents.paste;
  const id = useId();
  const [text, setText] = useState(begun);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  async function submit(event: FormEvent) {
    event.preventDefault();
    if (text.trim() === "") return;
    setBusy(true);
    setProblem(null);
    try {
      await onAdd(text);
    } catch (error) {
      setProblem(error);
      setBusy(false);
    }
  }
  return (
    <form className="paste-text" onSubmit={(event) => void submit(event)}>
      <label htmlFor={id}>{fetches ? words.labelFetches : words.label}</label>
      <textarea id={id} rows={12} value={text} onChange={(event) => setText(event.target.value)} />
      <p className="quiet small">{fetches ? words.hintFetches : words.hint}</p>
      {problem !== null && <ProblemNote problem={problem} />}
      <button type="submit" className="primary" disabled={busy || text.trim() === ""}>
        {busy ? words.adding : words.add}
      </button>
    </form>
  );
}

/** Takes what is pasted while no field has the focus: files, a long text, or an address where those are fetched. */
function usePaste(onFiles: (gathered: Gathered) => void, onAddress: ((address: string) => void) | null) {
  const pasted = useEffectEvent(onFiles);
  const addressed = useEffectEvent((address: string) => onAddress?.(address));
  const fetches = onAddress !== null;
  useEffect(() => {
    const paste = (event: ClipboardEvent) => {
      if (event.clipboardData === null || isCovered() || isField(event.target)) return;
      const files = gatherChosen(event.clipboardData.files);
      const text = event.clipboardData.getData("text/plain");
      const url = fetches ? addressIn(text) : null;
      if (files.files.length > 0) pasted(files);
      else if (url !== null) addressed(url);
      else if (text.trim().length >= LONG_TEXT) pasted(gatherText(text, t.documents.paste.name));
      else return;
      event.preventDefault();
    };
    window.addEventListener("paste", paste);
    return () => window.removeEventListener("paste", paste);
  }, [fetches]);
}

function isField(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest("input, textarea, select, [contenteditable]") !== null;
}
