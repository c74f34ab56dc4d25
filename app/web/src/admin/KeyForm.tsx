import { useState } from "react";
import { request } from "../api/http";
import type { Collection, Key, KeyWithSecret, Role } from "../api/types";
import { useSession } from "../session/session";
import { t } from "../strings";
import { Choice, optionsOf } from "./Choice";
import { CollectionChoice } from "./CollectionChoice";
import { expiryOf, type Life } from "./expiry";
import { Field, FormDialog } from "./Form";
import { TERMS_FIELDS, TermsFields } from "./TermsFields";
import { NEW_TERMS, termsOf } from "./terms";

const WORDS = t.admin.keys;
const FIELDS = ["name", "role", "user_id", "collections", "expires_at", "expires_in", ...TERMS_FIELDS];

interface KeyFormProps {
  /** Null is a new one. */
  before: Key | null;
  collections: readonly Collection[];
  onDone: (key: Key | KeyWithSecret) => Promise<void>;
  onClose: () => void;
}

/** A new key, or what can be changed of one. */
export function KeyForm({ before, collections, onDone, onClose }: KeyFormProps) {
  const session = useSession();
  const [name, setName] = useState(before?.name ?? "");
  const [role, setRole] = useState<Role>(before?.role ?? "member");
  const [user, setUser] = useState("");
  const [reach, setReach] = useState<readonly string[] | null>(
    before === null ? session.collections : before.collections,
  );
  const [life, setLife] = useState<Life>({ choice: before === null ? "never" : "keep", at: "" });
  const [budgeted, setBudgeted] = useState(false);
  const [terms, setTerms] = useState(NEW_TERMS);
  const lives = optionsOf<Life["choice"]>({ keep: WORDS.keepExpiry, ...WORDS.expiries });

  async function submit() {
    const body = { name: name.trim(), role, collections: reach, ...expiryOf(life) };
    if (before !== null) {
      await onDone(await request<Key>(`v1/admin/keys/${before.id}`, { method: "PATCH", body }));
      return;
    }
    const budget = budgeted ? termsOf(terms) : null;
    const made = { ...body, user_id: user.trim() || null, budget };
    await onDone(await request<KeyWithSecret>("v1/admin/keys", { method: "POST", body: made }));
  }

  return (
    <FormDialog
      title={before === null ? WORDS.create : WORDS.editTitle(before.name)}
      submit={before === null ? WORDS.create : t.admin.save}
      fields={FIELDS}
      onSubmit={submit}
      onClose={onClose}
    >
      {(errorOf) => (
        <>
          <Field label={WORDS.name} hint={WORDS.nameHint} error={errorOf("name")}>
            {(input) => (
              <input
                {...input}
                required
                maxLength={200}
                value={name}
                onChange={(event) => setName(event.target.value)}
              />
            )}
          </Field>
          <Field label={WORDS.role} error={errorOf("role")}>
            {(input) => <Choice input={input} value={role} options={optionsOf(t.admin.roleHints)} onChange={setRole} />}
          </Field>
          {before === null && (
            <Field label={WORDS.user} hint={WORDS.userHint} error={errorOf("user_id")}>
              {(input) => (
                <input {...input} maxLength={200} value={user} onChange={(event) => setUser(event.target.value)} />
              )}
            </Field>
          )}
          <CollectionChoice
            collections={collections}
            chosen={reach}
            limited={session.collections !== null}
            error={errorOf("collections")}
            onChange={setReach}
          />
          <Field label={WORDS.expiry} error={errorOf("expires_in")}>
            {(input) => (
              <Choice
                input={input}
                value={life.choice}
                options={before === null ? lives.filter(({ value }) => value !== "keep") : lives}
                onChange={(choice) => setLife({ ...life, choice })}
              />
            )}
          </Field>
          {life.choice === "at" && (
            <Field label={WORDS.expiresAt} error={errorOf("expires_at")}>
              {(input) => (
                <input
                  {...input}
                  type="datetime-local"
                  required
                  value={life.at}
                  onChange={(event) => setLife({ ...life, at: event.target.value })}
                />
              )}
            </Field>
          )}
          {before === null && (
            <>
              <label className="check">
                <input type="checkbox" checked={budgeted} onChange={(event) => setBudgeted(event.target.checked)} />
                {WORDS.budget}
              </label>
              {budgeted && <TermsFields terms={terms} onChange={setTerms} errorOf={errorOf} />}
            </>
          )}
        </>
      )}
    </FormDialog>
  );
}
