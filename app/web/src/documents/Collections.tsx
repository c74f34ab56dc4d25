/** The collections, one of which or all are looked at. */
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import type { Collection } from "../api/types";
import { t } from "../strings";
import { Dialog } from "../ui/Dialog";
import { useNotices } from "../ui/notices";
import { ProblemNote } from "../ui/ProblemNote";
import { makeCollection } from "./server";
import { numberWords } from "./words";

interface CollectionsProps {
  collections: readonly Collection[];
  chosen: Collection | null;
  mayMake: boolean;
  onChoose: (id: string | null) => void;
}

export function Collections({ collections, chosen, mayMake, onChoose }: CollectionsProps) {
  const [making, setMaking] = useState(false);
  const say = useNotices();
  const queries = useQueryClient();
  const words = t.documents.collections;
  const total = collections.reduce((sum, { documents }) => sum + documents, 0);

  async function make(name: string) {
    const made = await makeCollection(name);
    setMaking(false);
    say(words.made(made.name));
    await queries.invalidateQueries({ queryKey: ["collections"] });
    onChoose(made.id);
  }

  return (
    <nav className="collections" aria-label={words.title}>
      <ul>
        <li>
          <Choice name={words.all} count={total} isChosen={chosen === null} onChoose={() => onChoose(null)} />
        </li>
        {collections.map(({ id, name, documents }) => (
          <li key={id}>
            <Choice name={name} count={documents} isChosen={chosen?.id === id} onChoose={() => onChoose(id)} />
          </li>
        ))}
        {mayMake && (
          <li>
            <button type="button" className="plain make" onClick={() => setMaking(true)}>
              <span aria-hidden="true">+</span> {words.make}
            </button>
          </li>
        )}
      </ul>
      <Dialog title={words.make} open={making} onClose={() => setMaking(false)}>
        <NameForm
          name=""
          submit={words.create}
          hint={words.explain}
          onSubmit={make}
          onCancel={() => setMaking(false)}
        />
      </Dialog>
    </nav>
  );
}

interface ChoiceProps {
  name: string;
  count: number;
  isChosen: boolean;
  onChoose: () => void;
}

function Choice({ name, count, isChosen, onChoose }: ChoiceProps) {
  return (
    <button type="button" className="plain" aria-current={isChosen ? "true" : undefined} onClick={onChoose}>
      <span className="collection-name">{name}</span>
      <span className="count">
        <span aria-hidden="true">{numberWords(count)}</span>
        <span className="visually-hidden">, {t.documents.collections.count(count)}</span>
      </span>
    </button>
  );
}

interface NameFormProps {
  name: string;
  submit: string;
  hint?: string;
  onSubmit: (name: string) => Promise<void>;
  onCancel: () => void;
}

/** Asks for a collection's name. */
export function NameForm({ name: before, submit, hint, onSubmit, onCancel }: NameFormProps) {
  const id = useId();
  const [name, setName] = useState(before);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);

  async function send(event: FormEvent) {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      await onSubmit(name.trim());
    } catch (error) {
      setProblem(error);
      setBusy(false);
    }
  }

  return (
    <form onSubmit={(event) => void send(event)} className="stack">
      {hint !== undefined && <p className="quiet">{hint}</p>}
      <label htmlFor={id}>{t.documents.collections.name}</label>
      <input id={id} value={name} maxLength={200} required onChange={(event) => setName(event.target.value)} />
      {problem !== null && <ProblemNote problem={problem} />}
      <div className="dialog-foot">
        <button type="button" onClick={onCancel}>
          {t.cancel}
        </button>
        <button type="submit" className="primary" disabled={busy || name.trim() === "" || name.trim() === before}>
          {submit}
        </button>
      </div>
    </form>
  );
}
