import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import { CopyButton } from "./CopyButton";
import { Dialog } from "./Dialog";
import { ui } from "./strings";

interface SecretDialogProps {
  title: string;
  secret: string;
  /** What the secret is called; a key's is a secret, an invitation's a link. */
  label?: string;
  /** Said below it: what it is good for, and that it is shown this once. */
  warning?: string;
  children?: ReactNode;
  onClose: () => void;
}

/** A secret that is shown this once. Escape does not take it away unasked. */
export function SecretDialog(props: SecretDialogProps) {
  const words = ui.secret;
  const { title, secret, label = words.label, warning = words.warning, children, onClose } = props;
  const id = useId();
  const field = useRef<HTMLTextAreaElement>(null);
  const [leaving, setLeaving] = useState(false);
  // All of it is seen, whatever the font: a field of one line scrolls to the end of what is selected in it.
  useEffect(() => {
    const shown = field.current;
    if (shown !== null) shown.style.height = `${shown.scrollHeight + shown.offsetHeight - shown.clientHeight}px`;
  }, []);
  return (
    <Dialog title={title} open onClose={() => setLeaving(true)}>
      <div className="stack">
        {children}
        <label htmlFor={id}>{label}</label>
        <div className="row">
          <textarea
            ref={field}
            id={id}
            className="secret"
            rows={1}
            readOnly
            spellCheck={false}
            value={secret}
            aria-describedby={`${id}-warning`}
            onFocus={(event) => event.target.select()}
          />
          <CopyButton text={secret} label={words.copy} />
        </div>
        <p id={`${id}-warning`} className="warning">
          {warning}
        </p>
        {leaving && (
          <div className="problem" role="alert">
            <p>{words.leave}</p>
            <button type="button" className="danger" onClick={onClose}>
              {words.leaveAnyway}
            </button>
          </div>
        )}
      </div>
      <div className="dialog-foot">
        <button type="button" className="primary" onClick={onClose}>
          {words.stored}
        </button>
      </div>
    </Dialog>
  );
}
