import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useEffect, useState } from "react";
import { Problem, request } from "../api/http";
import type { ModelAddition } from "../api/types";
import { t } from "../strings";
import { CopyButton } from "../ui/CopyButton";
import { ProblemNote } from "../ui/ProblemNote";
import { Field } from "./Form";
import { refusalOf } from "./fields";
import { gigabytes } from "./gigabytes";
import { Section } from "./Section";

const WORDS = t.admin.models.add;
const KEY = ["model-additions"];
const REFRESHED_MS = 1000;

/** Downloads a model of the hub onto the server's machine, with progress; which one answers is still a setting. */
export function AddModel({ proposed }: { proposed: string | null }) {
  const cache = useQueryClient();
  const [model, setModel] = useState<string | null>(null);
  const [accepted, setAccepted] = useState(false);
  const named = model ?? proposed ?? "";
  const additions = useQuery({
    queryKey: KEY,
    queryFn: ({ signal }) => request<{ data: ModelAddition[] }>("v1/admin/models/additions", { signal }),
    refetchInterval: ({ state }) =>
      state.data?.data.some((one) => one.state === "downloading") ? REFRESHED_MS : false,
  });
  const added = additions.data?.data.filter((one) => one.state === "added").length ?? 0;
  useEffect(() => {
    if (added > 0) void cache.invalidateQueries({ queryKey: ["generators"] });
  }, [added, cache]);
  const add = useMutation({
    mutationFn: () =>
      request<ModelAddition>("v1/admin/models", {
        method: "POST",
        body: { model: named.trim(), accept_terms: accepted },
      }),
    onSuccess: () => {
      setModel("");
      setAccepted(false);
      void cache.invalidateQueries({ queryKey: KEY });
    },
  });
  const terms = add.error instanceof Problem && add.error.slug === "terms-not-accepted" ? add.error.detail : null;
  const wrong = refusalOf(add.error, ["model"]);

  function submit(event: FormEvent) {
    event.preventDefault();
    add.mutate();
  }

  return (
    <Section title={WORDS.title} lead={WORDS.lead}>
      <form className="stack server-test" onSubmit={submit}>
        <Field label={WORDS.model} hint={WORDS.hint} error={wrong?.field === "model" ? wrong.text : null}>
          {(input) => (
            <input
              {...input}
              required
              autoComplete="off"
              spellCheck={false}
              maxLength={200}
              value={named}
              onChange={(event) => {
                setModel(event.target.value);
                setAccepted(false);
                add.reset();
              }}
            />
          )}
        </Field>
        {terms !== null && (
          <>
            <p role="alert">{terms}</p>
            <label className="check">
              <input type="checkbox" checked={accepted} onChange={(event) => setAccepted(event.target.checked)} />{" "}
              {WORDS.accept}
            </label>
          </>
        )}
        <div className="row">
          <button type="submit" disabled={add.isPending || (terms !== null && !accepted)}>
            {add.isPending ? WORDS.asking : WORDS.download}
          </button>
        </div>
      </form>
      {add.isError && terms === null && wrong?.field == null && <ProblemNote problem={add.error} />}
      {additions.data !== undefined && additions.data.data.length > 0 && (
        <ul className="plain-list model-additions" aria-label={WORDS.list}>
          {additions.data.data.map((one) => (
            <AdditionRow key={one.id} addition={one} />
          ))}
        </ul>
      )}
    </Section>
  );
}

/** One addition: its licence, how much of it is here, and what to set once it is added. */
function AdditionRow({ addition }: { addition: ModelAddition }) {
  const cache = useQueryClient();
  const cancel = useMutation({
    mutationFn: () => request<ModelAddition>(`v1/admin/models/additions/${addition.id}`, { method: "DELETE" }),
    onSettled: () => cache.invalidateQueries({ queryKey: KEY }),
  });
  const { model, licence, state, bytes, done_bytes, detail } = addition;
  const setting = `FOOTNOTE_GENERATOR=${model}`;
  return (
    <li>
      <p>
        <b>{model}</b> <span className="quiet small">{WORDS.licence(licence)}</span>
      </p>
      {state === "downloading" && (
        <div className="row">
          <progress aria-label={model} max={Math.max(1, bytes)} value={done_bytes} />
          <span className="small">{WORDS.progress(gigabytes(done_bytes), gigabytes(bytes))}</span>
          <button type="button" className="plain small" disabled={cancel.isPending} onClick={() => cancel.mutate()}>
            {WORDS.cancel}
          </button>
        </div>
      )}
      {state === "added" && (
        <p>
          <span className="badge good">{WORDS.added}</span> {WORDS.set} <code>{setting}</code>{" "}
          <CopyButton className="plain small" text={setting} label={WORDS.copy} />
        </p>
      )}
      {state === "failed" && (
        <p>
          <span className="badge bad">{WORDS.failed}</span> {detail}
        </p>
      )}
      {state === "cancelled" && (
        <p>
          <span className="badge">{WORDS.cancelled}</span> {WORDS.kept}
        </p>
      )}
    </li>
  );
}
