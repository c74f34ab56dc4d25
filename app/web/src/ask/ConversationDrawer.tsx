/** The conversations on a narrow screen: behind a button, in a dialog at the side. */
import { useEffect, useRef, useState } from "react";
import { t } from "../strings";
import { ConversationList } from "./ConversationList";
import type { Runs } from "./runs";

export function ConversationDrawer({ current, runs }: { current: string | null; runs: Runs }) {
  const [open, setOpen] = useState(false);
  const dialog = useRef<HTMLDialogElement>(null);

  useEffect(() => {
    if (open) dialog.current?.showModal();
    else dialog.current?.close();
  }, [open]);

  return (
    <div className="ask-bar">
      <button type="button" aria-haspopup="dialog" onClick={() => setOpen(true)}>
        <span aria-hidden="true">☰</span> {t.ask.conversations.open}
      </button>
      {current !== null && (
        <a className="button" href="#/">
          <span aria-hidden="true">+</span> {t.ask.conversations.new}
        </a>
      )}
      <dialog
        ref={dialog}
        className="ask-drawer"
        aria-label={t.ask.conversations.heading}
        onClose={() => setOpen(false)}
      >
        {open && (
          <>
            <button
              type="button"
              className="plain ask-drawer-close"
              aria-label={t.close}
              title={t.close}
              onClick={() => setOpen(false)}
            >
              <span aria-hidden="true">✕</span>
            </button>
            <ConversationList current={current} runs={runs} onChosen={() => setOpen(false)} />
          </>
        )}
      </dialog>
    </div>
  );
}
