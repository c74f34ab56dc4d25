/** A new table: its questions, and the documents that each of them is asked of. */
import { type FormEvent, useEffect, useId, useRef, useState } from "react";
import { Field } from "../admin/Form";
import { useEvery } from "../api/every";
import type { AnswerTable, Collection } from "../api/types";
import { ScopePicker } from "../ask/ScopePicker";
import type { Scope } from "../ask/scope";
import { t } from "../strings";
import { ProblemNote } from "../ui/ProblemNote";
import { columnsOf, MOST_COLUMNS, MOST_NAME, MOST_QUESTION, type Wrong, wrongOf } from "./questions";
import { words } from "./strings";
import { documentsIn, useNewTable } from "./tables";

interface NewTableFormProps {
  /** The documents that are chosen at first. */
  about: Scope;
  /** Whether somebody has just asked for it. */
  takesFocus: boolean;
  onMade: (made: AnswerTable) => void;
  /** Null where there is nothing else to see. */
  onCancel: (() => void) | null;
}

export function NewTableForm({ about, takesFocus, onMade, onCancel }: NewTableFormProps) {
  const heading = useId();
  const field = useRef<HTMLTextAreaElement>(null);
  const [lines, setLines] = useState("");
  const [scope, setScope] = useState(about);
  const making = useNewTable();
  const collections = useEvery<Collection>("collections", "v1/collections");
  const columns = columnsOf(lines);
  const wrong = wrongOf(columns);
  const documents = documentsIn(scope, collections);

  useEffect(() => {
    if (takesFocus) field.current?.focus({ preventScroll: true });
  }, [takesFocus]);

  function send(event: FormEvent) {
    event.preventDefault();
    making.mutate({ columns, scope }, { onSuccess: onMade });
  }

  return (
    <form className="card stack" aria-labelledby={heading} onSubmit={send}>
      <h2 id={heading}>{words.newHeading}</h2>
      <Field label={words.questions} hint={words.questionsHint} error={wrong === null ? null : wrongWords(wrong)}>
        {(input) => (
          <textarea
            {...input}
            ref={field}
            rows={5}
            dir="auto"
            value={lines}
            onChange={({ target }) => setLines(target.value)}
          />
        )}
      </Field>
      <ScopePicker scope={scope} onChange={setScope} />
      <p className="quiet small">{words.scopeHint}</p>
      {making.isError && <ProblemNote problem={making.error} />}
      <div className="row spread">
        <span className="quiet small">
          {documents !== null && columns.length > 0 && words.size(columns.length, documents)}
        </span>
        <span className="row">
          {onCancel !== null && (
            <button type="button" onClick={onCancel}>
              {t.cancel}
            </button>
          )}
          <button
            type="submit"
            className="primary"
            disabled={columns.length === 0 || wrong !== null || making.isPending}
          >
            {words.start}
          </button>
        </span>
      </div>
    </form>
  );
}

function wrongWords(wrong: Wrong): string {
  const wrongs = words.wrong;
  switch (wrong.kind) {
    case "many":
      return wrongs.many(MOST_COLUMNS, wrong.found);
    case "same":
      return wrongs.same(wrong.name);
    case "longName":
      return wrongs.longName(MOST_NAME, wrong.name);
    case "longQuestion":
      return wrongs.longQuestion(MOST_QUESTION);
  }
}
