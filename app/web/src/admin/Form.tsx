import { type FormEvent, type ReactNode, useId, useState } from "react";
import { t } from "../strings";
import { Dialog } from "../ui/Dialog";
import { ProblemNote } from "../ui/ProblemNote";
import { refusalOf, Wrong } from "./fields";

/** What a field gives its input: its id, and what describes it. */
export interface InputProps {
  id: string;
  "aria-describedby": string | undefined;
  "aria-invalid": true | undefined;
}

interface FieldProps {
  label: string;
  hint?: string | undefined;
  error?: string | null;
  children: (input: InputProps) => ReactNode;
}

/** A label, an input, what it is for, and what is wrong with it. */
export function Field({ label, hint, error = null, children }: FieldProps) {
  const id = useId();
  const described = [hint !== undefined && `${id}-hint`, error !== null && `${id}-error`].filter(Boolean).join(" ");
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({
        id,
        "aria-describedby": described === "" ? undefined : described,
        "aria-invalid": error === null ? undefined : true,
      })}
      {hint !== undefined && (
        <p id={`${id}-hint`} className="quiet small">
          {hint}
        </p>
      )}
      {error !== null && (
        <p id={`${id}-error`} className="field-error small" role="alert">
          {error}
        </p>
      )}
    </div>
  );
}

/** What is wrong with a field, by its name in the API; null where nothing is. */
export type ErrorOf = (field: string) => string | null;

interface FormDialogProps {
  title: string;
  submit: string;
  /** The names of its fields in the API: refusals that name one are shown beside it. */
  fields: readonly string[];
  danger?: boolean;
  onSubmit: () => Promise<void>;
  onClose: () => void;
  children: (errorOf: ErrorOf) => ReactNode;
}

/** A form in a dialog. It stays as it is when the server refuses it, and says why. */
export function FormDialog({ title, submit, fields, danger, onSubmit, onClose, children }: FormDialogProps) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);

  async function send(event: FormEvent) {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      await onSubmit();
    } catch (error) {
      setProblem(error);
    } finally {
      setBusy(false);
    }
  }

  const wrong = problem instanceof Wrong ? problem : refusalOf(problem, fields);
  return (
    <Dialog title={title} open onClose={onClose}>
      <form onSubmit={(event) => void send(event)} className="stack">
        {children((field) => (wrong?.field === field ? wrong.text : null))}
        {problem !== null && (wrong === null || wrong.field === null) && <ProblemNote problem={problem} />}
        <div className="dialog-foot">
          <button type="button" onClick={onClose}>
            {t.cancel}
          </button>
          <button type="submit" className={danger ? "danger" : "primary"} disabled={busy}>
            {submit}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** A question before something that cannot be undone. */
export function Confirm(props: {
  title: string;
  text: string;
  action: string;
  onConfirm: () => Promise<void>;
  onClose: () => void;
}) {
  return (
    <FormDialog
      title={props.title}
      submit={props.action}
      fields={[]}
      danger
      onSubmit={props.onConfirm}
      onClose={props.onClose}
    >
      {() => <p>{props.text}</p>}
    </FormDialog>
  );
}
