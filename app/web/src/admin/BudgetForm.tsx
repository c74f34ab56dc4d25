import { useState } from "react";
import { useEvery } from "../api/every";
import { request } from "../api/http";
import type { Budget, Collection, Key, User } from "../api/types";
import { t } from "../strings";
import { Choice, optionsOf } from "./Choice";
import { Field, FormDialog } from "./Form";
import { TERMS_FIELDS, TermsFields } from "./TermsFields";
import { limitOf, NEW_TERMS, type TermsForm, termsOf, thresholdsOf } from "./terms";

const WORDS = t.admin.budgets;
const FIELDS = ["scope_id", "scope_type", ...TERMS_FIELDS] as const;
type Scope = keyof typeof WORDS.scopes;

interface BudgetFormProps {
  /** Null is a new one. */
  before: Budget | null;
  onDone: () => Promise<void>;
  onClose: () => void;
}

/** A new budget, or what can be changed of one: how much it is, and what happens when it is used up. */
export function BudgetForm({ before, onDone, onClose }: BudgetFormProps) {
  const [scope, setScope] = useState<Scope>("tenant");
  const [whom, setWhom] = useState("");
  const [terms, setTerms] = useState<TermsForm>(() => (before === null ? NEW_TERMS : formOf(before)));

  async function submit() {
    if (before === null) {
      const body = { ...termsOf(terms), scope_type: scope, scope_id: scope === "tenant" ? null : whom };
      await request<Budget>("v1/admin/budgets", { method: "POST", body });
    } else {
      const body = {
        limit: limitOf(terms.limit, terms.unit),
        enforcement: terms.enforcement,
        thresholds: thresholdsOf(terms.thresholds),
        webhook_url: terms.webhook.trim(),
      };
      await request<Budget>(`v1/admin/budgets/${before.id}`, { method: "PATCH", body });
    }
    await onDone();
  }

  return (
    <FormDialog
      title={before === null ? WORDS.create : WORDS.editTitle}
      submit={before === null ? WORDS.create : t.admin.save}
      fields={FIELDS}
      onSubmit={submit}
      onClose={onClose}
    >
      {(errorOf) => (
        <>
          {before === null && (
            <div className="pair">
              <Field label={WORDS.scope} error={errorOf("scope_type")}>
                {(input) => (
                  <Choice
                    input={input}
                    value={scope}
                    options={optionsOf(WORDS.scopes)}
                    onChange={(chosen) => {
                      setScope(chosen);
                      setWhom("");
                    }}
                  />
                )}
              </Field>
              {scope !== "tenant" && (
                <WhomField scope={scope} whom={whom} error={errorOf("scope_id")} onChange={setWhom} />
              )}
            </div>
          )}
          <TermsFields terms={terms} onChange={setTerms} errorOf={errorOf} fixed={before !== null} />
        </>
      )}
    </FormDialog>
  );
}

interface WhomFieldProps {
  scope: Exclude<Scope, "tenant">;
  whom: string;
  error: string | null;
  onChange: (whom: string) => void;
}

/** Whose use a budget counts: one of those there are. */
function WhomField({ scope, whom, error, onChange }: WhomFieldProps) {
  const users = useEvery<User>("users", "v1/admin/users", scope === "user");
  const keys = useEvery<Key>("keys", "v1/admin/keys", scope === "key");
  const collections = useEvery<Collection>("collections", "v1/collections", scope === "collection");
  const options = {
    user: users.map(({ id, name }) => ({ id, label: name && name !== id ? `${name} (${id})` : id })),
    key: keys
      .filter(({ revoked_at }) => revoked_at === null)
      .map(({ id, name, prefix }) => ({ id, label: `${name} (${prefix}…)` })),
    collection: collections.map(({ id, name }) => ({ id, label: name })),
  }[scope];
  return (
    <Field label={WORDS.whom} error={error}>
      {(input) => (
        <select {...input} required value={whom} onChange={(event) => onChange(event.target.value)}>
          <option value="" />
          {options.map(({ id, label }) => (
            <option key={id} value={id}>
              {label}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

function formOf(budget: Budget): TermsForm {
  return {
    unit: budget.unit === "cost" ? "cost" : "tokens",
    limit: String(budget.limit),
    period: "total",
    tz: budget.tz,
    enforcement: budget.enforcement === "soft" ? "soft" : "hard",
    thresholds: budget.thresholds.join(", "),
    webhook: budget.webhook_url,
  };
}
