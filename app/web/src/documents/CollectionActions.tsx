/** What can be done with a collection: another name, or away with it and what is in it. */
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import { flushSync } from "react-dom";
import type { Collection } from "../api/types";
import { t } from "../strings";
import { Dialog } from "../ui/Dialog";
import { useNotices } from "../ui/notices";
import { ProblemNote } from "../ui/ProblemNote";
import { NameForm } from "./Collections";
import { deleteCollection, instructCollection, renameCollection } from "./server";
import { refresh } from "./UploadProvider";

interface CollectionActionsProps {
  collection: Collection;
  onDeleted: () => void;
}

export function CollectionActions({ collection, onDeleted }: CollectionActionsProps) {
  const queries = useQueryClient();
  const say = useNotices();
  const [open, setOpen] = useState<"rename" | "instruct" | "delete" | null>(null);
  const words = t.documents.collections;
  const close = () => setOpen(null);

  async function rename(name: string) {
    await renameCollection(collection.id, name);
    await queries.invalidateQueries({ queryKey: ["collections"] });
    close();
  }

  async function instruct(instructions: string) {
    await instructCollection(collection.id, instructions);
    await queries.invalidateQueries({ queryKey: ["collections"] });
    close();
  }

  async function remove() {
    await deleteCollection(collection.id, collection.documents > 0);
    // Before anything is asked again: what is in a collection that is gone cannot be listed.
    flushSync(() => {
      close();
      onDeleted();
    });
    say(words.deleted(collection.name));
    await refresh(queries);
  }

  return (
    <span className="row">
      <button type="button" className="plain" onClick={() => setOpen("rename")}>
        {words.rename}
      </button>
      <button type="button" className="plain" onClick={() => setOpen("instruct")}>
        {words.instructions}
      </button>
      <button type="button" className="plain danger" onClick={() => setOpen("delete")}>
        {words.delete}
      </button>
      <Dialog title={words.rename} open={open === "rename"} onClose={close}>
        <NameForm name={collection.name} submit={words.save} onSubmit={rename} onCancel={close} />
      </Dialog>
      <Dialog title={words.instructions} open={open === "instruct"} onClose={close}>
        <InstructionsForm instructions={collection.instructions} onSubmit={instruct} onCancel={close} />
      </Dialog>
      <Dialog title={words.deleteTitle(collection.name)} open={open === "delete"} onClose={close}>
        <Confirm documents={collection.documents} onConfirm={remove} onCancel={close} />
      </Dialog>
    </span>
  );
}

interface InstructionsFormProps {
  instructions: string;
  onSubmit: (instructions: string) => Promise<void>;
  onCancel: () => void;
}

function InstructionsForm({ instructions: before, onSubmit, onCancel }: InstructionsFormProps) {
  const id = useId();
  const [text, setText] = useState(before);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  const words = t.documents.collections;

  async function send(event: FormEvent) {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      await onSubmit(text.trim());
    } catch (error) {
      setProblem(error);
      setBusy(false);
    }
  }

  return (
    <form onSubmit={(event) => void send(event)} className="stack">
      <label htmlFor={id} className="quiet">
        {words.instructionsExplain}
      </label>
      <textarea id={id} rows={6} maxLength={2000} value={text} onChange={(event) => setText(event.target.value)} />
      {problem !== null && <ProblemNote problem={problem} />}
      <div className="dialog-foot">
        <button type="button" onClick={onCancel}>
          {t.cancel}
        </button>
        <button type="submit" className="primary" disabled={busy || text.trim() === before}>
          {words.save}
        </button>
      </div>
    </form>
  );
}

interface ConfirmProps {
  documents: number;
  onConfirm: () => Promise<void>;
  onCancel: () => void;
}

function Confirm({ documents, onConfirm, onCancel }: ConfirmProps) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  const words = t.documents.collections;

  async function confirm() {
    setBusy(true);
    setProblem(null);
    try {
      await onConfirm();
    } catch (error) {
      setProblem(error);
      setBusy(false);
    }
  }

  return (
    <>
      <p>{documents === 0 ? words.deleteEmpty : words.deleteFull(documents)}</p>
      {problem !== null && <ProblemNote problem={problem} />}
      <div className="dialog-foot">
        <button type="button" onClick={onCancel}>
          {t.cancel}
        </button>
        <button type="button" className="danger" disabled={busy} onClick={() => void confirm()}>
          {words.deleteConfirm(documents)}
        </button>
      </div>
    </>
  );
}
