import { type ReactNode, useEffect, useId, useRef } from "react";
import { t } from "../strings";
import "./dialog.css";

/** What somebody who opens a dialog wants first: a field, or else a button. */
const FIRST = ".dialog-body :is(input, select, textarea, button, a[href]):not(:disabled)";

interface DialogProps {
  title: string;
  open: boolean;
  onClose: () => void;
  children: ReactNode;
}

/** A modal dialog: the browser's own, which keeps the focus inside, closes on Escape, and gives the focus back to where
 * it was. What is in it exists only while it is open, so a form in it starts anew each time. */
export function Dialog({ title, open, onClose, children }: DialogProps) {
  if (!open) return null;
  return (
    <OpenDialog title={title} onClose={onClose}>
      {children}
    </OpenDialog>
  );
}

function OpenDialog({ title, onClose, children }: Omit<DialogProps, "open">) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();

  useEffect(() => {
    const shown = dialog.current;
    const before = document.activeElement;
    if (shown !== null && !shown.open) {
      shown.showModal();
      // The browser would begin at the closing button.
      shown.querySelector<HTMLElement>(FIRST)?.focus();
    }
    return () => {
      // Taken out of the page while open, the browser does not give the focus back by itself.
      shown?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);

  return (
    <dialog
      ref={dialog}
      aria-labelledby={heading}
      onCancel={(event) => {
        // Whoever opened it decides whether it goes; a file input inside cancels with an event of the same name.
        if (event.target !== event.currentTarget) return;
        event.preventDefault();
        onClose();
      }}
    >
      <div className="dialog-head">
        <h2 id={heading}>{title}</h2>
        <button type="button" className="plain" onClick={onClose} aria-label={t.close} title={t.close}>
          <span aria-hidden="true">✕</span>
        </button>
      </div>
      <div className="dialog-body">{children}</div>
    </dialog>
  );
}
