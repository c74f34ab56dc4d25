import { useState } from "react";
import { request } from "../api/http";
import type { Collection, InvitationWithLink, Role, User } from "../api/types";
import { t } from "../strings";
import { Choice, optionsOf } from "./Choice";
import { CollectionChoice } from "./CollectionChoice";
import { Field, FormDialog } from "./Form";

const WORDS = t.admin.invitations;
const FIELDS = ["name", "email", "role", "collections", "expires_in"];
const HOUR = 3600;
const DAY = 24 * HOUR;
const SECONDS = { hour: HOUR, day: DAY, days: 3 * DAY, week: 7 * DAY, month: 30 * DAY } as const;
type Life = keyof typeof SECONDS;

interface InviteFormProps {
  collections: readonly Collection[];
  onDone: (made: InvitationWithLink) => Promise<void>;
  onClose: () => void;
}

/** A link for a new person. */
export function InviteForm({ collections, onDone, onClose }: InviteFormProps) {
  const [name, setName] = useState("");
  const [email, setEmail] = useState("");
  const [role, setRole] = useState<Role>("member");
  const [reach, setReach] = useState<readonly string[] | null>(null);
  const [life, setLife] = useState<Life>("week");

  async function submit() {
    const body = {
      name: name.trim(),
      email: email.trim() || null,
      role,
      collections: reach,
      expires_in: SECONDS[life],
    };
    await onDone(await request<InvitationWithLink>("v1/admin/invitations", { method: "POST", body }));
  }

  return (
    <FormDialog title={WORDS.create} submit={WORDS.create} fields={FIELDS} onSubmit={submit} onClose={onClose}>
      {(errorOf) => (
        <>
          <Field label={WORDS.name} hint={WORDS.nameHint} error={errorOf("name")}>
            {(input) => (
              <input
                {...input}
                required
                maxLength={200}
                autoComplete="off"
                value={name}
                onChange={(event) => setName(event.target.value)}
              />
            )}
          </Field>
          <EmailField email={email} error={errorOf("email")} onChange={setEmail} />
          <Field label={WORDS.role} error={errorOf("role")}>
            {(input) => <Choice input={input} value={role} options={optionsOf(t.admin.roleHints)} onChange={setRole} />}
          </Field>
          <CollectionChoice
            collections={collections}
            chosen={reach}
            limited={false}
            error={errorOf("collections")}
            onChange={setReach}
          />
          <LifeField life={life} error={errorOf("expires_in")} onChange={setLife} />
        </>
      )}
    </FormDialog>
  );
}

interface SignInLinkFormProps {
  user: User;
  onDone: (made: InvitationWithLink) => Promise<void>;
  onClose: () => void;
}

/** A link for somebody who is a user already and lost access. */
export function SignInLinkForm({ user, onDone, onClose }: SignInLinkFormProps) {
  const [email, setEmail] = useState("");
  const [role, setRole] = useState<Role | "before">("before");
  const [life, setLife] = useState<Life>("day");
  const roles = optionsOf<Role | "before">({ before: WORDS.asBefore, ...t.admin.roleHints });

  async function submit() {
    const body = {
      email: email.trim() || null,
      role: role === "before" ? null : role,
      expires_in: SECONDS[life],
    };
    const path = `v1/admin/users/${encodeURIComponent(user.id)}/sign-in-link`;
    await onDone(await request<InvitationWithLink>(path, { method: "POST", body }));
  }

  return (
    <FormDialog
      title={WORDS.signInTitle(user.name || user.id)}
      submit={WORDS.signIn}
      fields={FIELDS}
      onSubmit={submit}
      onClose={onClose}
    >
      {(errorOf) => (
        <>
          <p>{WORDS.signInLead}</p>
          <EmailField email={email} error={errorOf("email")} onChange={setEmail} />
          <Field label={WORDS.role} error={errorOf("role")}>
            {(input) => <Choice input={input} value={role} options={roles} onChange={setRole} />}
          </Field>
          <LifeField life={life} error={errorOf("expires_in")} onChange={setLife} />
        </>
      )}
    </FormDialog>
  );
}

interface EmailFieldProps {
  email: string;
  error: string | null;
  onChange: (email: string) => void;
}

function EmailField({ email, error, onChange }: EmailFieldProps) {
  return (
    <Field label={WORDS.email} hint={WORDS.emailHint} error={error}>
      {(input) => (
        <input
          {...input}
          type="email"
          maxLength={254}
          autoComplete="off"
          value={email}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}

interface LifeFieldProps {
  life: Life;
  error: string | null;
  onChange: (life: Life) => void;
}

function LifeField({ life, error, onChange }: LifeFieldProps) {
  return (
    <Field label={WORDS.expiry} error={error}>
      {(input) => <Choice input={input} value={life} options={optionsOf<Life>(WORDS.lives)} onChange={onChange} />}
    </Field>
  );
}
