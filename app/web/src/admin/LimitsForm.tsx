import { useState } from "react";
import type { Key, Limits, NewLimits } from "../api/types";
import { t } from "../strings";
import { Field, FormDialog } from "./Form";

const WORDS = t.admin.limits;
const FIELDS = ["requests_per_minute", "tokens_per_minute", "concurrent_requests"] as const;
const LABELS = {
  requests_per_minute: WORDS.requests,
  tokens_per_minute: WORDS.tokens,
  concurrent_requests: WORDS.concurrent,
} as const;

export type LimitedThing = Limits & { name: string };

interface LimitsFormProps {
  /** Null lets a key be chosen. */
  before: LimitedThing | null;
  keys: readonly Key[];
  onSubmit: (whose: Pick<Limits, "scope_type" | "id">, limits: NewLimits) => Promise<void>;
  onClose: () => void;
}

/** What a key, or all of them together, may take. */
export function LimitsForm({ before, keys, onSubmit, onClose }: LimitsFormProps) {
  const [key, setKey] = useState("");
  const [limits, setLimits] = useState(() => ({
    requests_per_minute: textOf(before?.requests_per_minute),
    tokens_per_minute: textOf(before?.tokens_per_minute),
    concurrent_requests: textOf(before?.concurrent_requests),
  }));
  async function submit() {
    const whose = before ?? { scope_type: "key" as const, id: key };
    await onSubmit(whose, {
      requests_per_minute: numberOf(limits.requests_per_minute),
      tokens_per_minute: numberOf(limits.tokens_per_minute),
      concurrent_requests: numberOf(limits.concurrent_requests),
    });
  }
  return (
    <FormDialog
      title={before === null ? WORDS.set : WORDS.editTitle(before.name)}
      submit={t.admin.save}
      fields={FIELDS}
      onSubmit={submit}
      onClose={onClose}
    >
      {(errorOf) => (
        <>
          {before === null && (
            <Field label={WORDS.key}>
              {(input) => (
                <select {...input} required value={key} onChange={(event) => setKey(event.target.value)}>
                  <option value="" />
                  {keys.map(({ id, name, prefix }) => (
                    <option key={id} value={id}>
                      {`${name} (${prefix}…)`}
                    </option>
                  ))}
                </select>
              )}
            </Field>
          )}
          {FIELDS.map((field) => (
            <Field key={field} label={LABELS[field]} hint={WORDS.empty} error={errorOf(field)}>
              {(input) => (
                <input
                  {...input}
                  type="number"
                  min={1}
                  max={10 ** 12}
                  step={1}
                  value={limits[field]}
                  onChange={(event) => setLimits({ ...limits, [field]: event.target.value })}
                />
              )}
            </Field>
          ))}
        </>
      )}
    </FormDialog>
  );
}

function textOf(limit: number | null | undefined): string {
  return limit === null || limit === undefined ? "" : String(limit);
}

function numberOf(text: string): number | null {
  return text === "" ? null : Number(text);
}
