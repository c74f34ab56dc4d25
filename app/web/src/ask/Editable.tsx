/** A question that can be changed where it stands, and asked again as it is then. */
import { type FormEvent, type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { t } from "../strings";

interface EditableProps {
  text: string;
  /** What the field is for. */
  label: string;
  /** What the button does. */
  button: string;
  /** Null while nothing can be asked. */
  onAsk: ((question: string) => void) | null;
  children: ReactNode;
}

export function Editable({ text, label, button, onAsk, children }: EditableProps) {
  const [changed, setChanged] = useState<string | null>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const opener = useRef<HTMLButtonElement>(null);
  const open = changed !== null && onAsk !== null;
  const was = useRef(open);

  useEffect(() => {
    if (open === was.current) return;
    was.current = open;
    if (open) {
      field.current?.focus();
      field.current?.setSelectionRange(text.length, text.length);
    } else opener.current?.focus({ preventScroll: true });
  }, [open, text]);

  function submit(event?: FormEvent) {
    event?.preventDefault();
    const question = changed?.trim() ?? "";
    if (question === "" || onAsk === null) return;
    setChanged(null);
    onAsk(question);
  }

  function onKeyDown(event: KeyboardEvent) {
    if (event.key === "Escape") setChanged(null);
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    submit();
  }

  if (open) {
    return (
      <form className="ask-change" onSubmit={submit}>
        <textarea
          ref={field}
          aria-label={label}
          rows={2}
          value={changed}
          onChange={(event) => setChanged(event.target.value)}
          onKeyDown={onKeyDown}
        />
        <div className="row">
          <button type="submit" className="primary small" disabled={changed.trim() === ""}>
            {t.ask.turn.askChanged}
          </button>
          <button type="button" className="small" onClick={() => setChanged(null)}>
            {t.cancel}
          </button>
        </div>
      </form>
    );
  }
  return (
    <div className="ask-editable">
      {children}
      {onAsk !== null && (
        <button
          ref={opener}
          type="button"
          className="plain ask-edit"
          aria-label={button}
          title={button}
          onClick={() => setChanged(text)}
        >
          <span aria-hidden="true">✎</span>
        </button>
      )}
    </div>
  );
}
