import { useId, useState } from "react";
import { t } from "../strings";
import { CopyButton } from "../ui/CopyButton";
import { Dialog } from "../ui/Dialog";

const WORDS = t.admin.secret;

/** A secret that is shown this once. Escape does not take it away unasked. */
export function SecretDialog({ name, secret, onClose }: { name: string; secret: string; onClose: () => void }) {
  const id = useId();
  const [leaving, setLeaving] = useState(false);
  return (
    <Dialog title={WORDS.title(name)} open onClose={() => setLeaving(true)}>
      <div className="stack">
        <label htmlFor={id}>{WORDS.label}</label>
        <div className="row">
          <input
            id={id}
            className="secret"
            readOnly
            value={secret}
            aria-describedby={`${id}-warning`}
            onFocus={(event) => event.target.select()}
          />
          <CopyButton text={secret} label={WORDS.copy} />
        </div>
        <p id={`${id}-warning`} className="warning">
          {WORDS.warning}
        </p>
        {leaving && (
          <div className="problem" role="alert">
            <p>{WORDS.leave}</p>
            <button type="button" className="danger" onClick={onClose}>
              {WORDS.leaveAnyway}
            </button>
          </div>
        )}
      </div>
      <div className="dialog-foot">
        <button type="button" className="primary" onClick={onClose}>
          {WORDS.stored}
        </button>
      </div>
    </Dialog>
  );
}
