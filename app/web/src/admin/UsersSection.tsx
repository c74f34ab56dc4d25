import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useEvery } from "../api/every";
import { request } from "../api/http";
import type { Collection, InvitationWithLink, User } from "../api/types";
import { useSession } from "../session/session";
import { t } from "../strings";
import { useNotices } from "../ui/notices";
import { momentText } from "../ui/numbers";
import { wordsOf } from "../ui/ProblemNote";
import { Confirm, Field, FormDialog } from "./Form";
import { InvitationList, LinkDialog } from "./InvitationList";
import { InviteForm, SignInLinkForm } from "./InviteForm";
import { useList } from "./lists";
import { RowButton } from "./RowButton";
import { Section } from "./Section";
import { type Column, List } from "./Table";

const WORDS = t.admin.users;
const NAMES = ["id", "name"] as const;

type Open = { what: "invite" | "create" } | { what: "rename" | "disable" | "signIn"; user: User } | null;

/** The tenant's users: whom use is booked on, and who is let in. */
export function UsersSection() {
  const session = useSession();
  const queries = useQueryClient();
  const say = useNotices();
  const [open, setOpen] = useState<Open>(null);
  const [fresh, setFresh] = useState<InvitationWithLink | null>(null);
  const found = useList<User>(["users", "list"], "v1/admin/users");
  const collections = useEvery<Collection>("collections", "v1/collections");

  async function linkMade(made: InvitationWithLink) {
    setOpen(null);
    setFresh(made);
    await queries.invalidateQueries({ queryKey: ["invitations"] });
  }

  async function change(user: User, body: { name?: string; disabled?: boolean }, notice: string) {
    await request<User>(pathOf(user), { method: "PATCH", body });
    setOpen(null);
    say(notice);
    await queries.invalidateQueries({ queryKey: ["users"] });
  }
  async function enable(user: User) {
    try {
      await change(user, { disabled: false }, WORDS.enabledNotice(calledOf(user)));
    } catch (error) {
      say(wordsOf(error));
    }
  }

  return (
    <>
      <Section
        title={t.admin.sections.users}
        lead={WORDS.lead}
        actions={
          <>
            <button type="button" onClick={() => setOpen({ what: "create" })}>
              {WORDS.create}
            </button>
            <button type="button" className="primary" onClick={() => setOpen({ what: "invite" })}>
              {t.admin.invitations.create}
            </button>
          </>
        }
      >
        <List
          label={t.admin.sections.users}
          found={found}
          items={found.items}
          none={WORDS.none}
          keyOf={(user) => user.id}
          columns={columnsOf(session.user_id)}
          actions={(user) => (
            <>
              <RowButton of={calledOf(user)} onClick={() => setOpen({ what: "rename", user })}>
                {WORDS.rename}
              </RowButton>
              {user.disabled_at === null && (
                <RowButton of={calledOf(user)} onClick={() => setOpen({ what: "signIn", user })}>
                  {t.admin.invitations.signIn}
                </RowButton>
              )}
              {user.disabled_at !== null && (
                <RowButton of={calledOf(user)} onClick={() => void enable(user)}>
                  {WORDS.enable}
                </RowButton>
              )}
              {user.disabled_at === null && user.id !== session.user_id && (
                <RowButton of={calledOf(user)} danger onClick={() => setOpen({ what: "disable", user })}>
                  {WORDS.disable}
                </RowButton>
              )}
            </>
          )}
        />
        {open?.what === "invite" && (
          <InviteForm collections={collections} onClose={() => setOpen(null)} onDone={linkMade} />
        )}
        {open?.what === "signIn" && <SignInLinkForm user={open.user} onClose={() => setOpen(null)} onDone={linkMade} />}
        {fresh !== null && <LinkDialog made={fresh} onClose={() => setFresh(null)} />}
        {open?.what === "create" && (
          <UserForm
            title={WORDS.create}
            user={null}
            onClose={() => setOpen(null)}
            onSubmit={async (body) => {
              await request<User>("v1/admin/users", { method: "POST", body });
              setOpen(null);
              await queries.invalidateQueries({ queryKey: ["users"] });
            }}
          />
        )}
        {open?.what === "rename" && (
          <UserForm
            title={WORDS.rename}
            user={open.user}
            onClose={() => setOpen(null)}
            onSubmit={({ name }) => change(open.user, { name }, t.admin.keys.edited)}
          />
        )}
        {open?.what === "disable" && (
          <Confirm
            title={WORDS.disableTitle(calledOf(open.user))}
            text={WORDS.disableText}
            action={WORDS.disable}
            onConfirm={() => change(open.user, { disabled: true }, WORDS.disabledNotice(calledOf(open.user)))}
            onClose={() => setOpen(null)}
          />
        )}
      </Section>
      <InvitationList collections={collections} />
    </>
  );
}

function columnsOf(yourself: string): Column<User>[] {
  return [
    {
      header: WORDS.name,
      cell: (user) => (
        <>
          {calledOf(user)} {user.id === yourself && <span className="badge">{WORDS.you}</span>}
        </>
      ),
    },
    { header: WORDS.id, cell: (user) => <code>{user.id}</code> },
    {
      header: WORDS.state,
      cell: (user) =>
        user.disabled_at === null ? (
          <span className="badge good">{WORDS.works}</span>
        ) : (
          <span className="badge bad">{WORDS.disabled(momentText(user.disabled_at))}</span>
        ),
    },
    { header: WORDS.added, cell: (user) => momentText(user.created_at) },
  ];
}

interface UserFormProps {
  title: string;
  user: User | null;
  onSubmit: (body: { id: string | null; name: string }) => Promise<void>;
  onClose: () => void;
}

function UserForm({ title, user, onSubmit, onClose }: UserFormProps) {
  const [id, setId] = useState("");
  const [name, setName] = useState(user?.name ?? "");
  return (
    <FormDialog
      title={title}
      submit={user === null ? WORDS.create : t.admin.save}
      fields={NAMES}
      onSubmit={() => onSubmit({ id: id.trim() || null, name: name.trim() })}
      onClose={onClose}
    >
      {(errorOf) => (
        <>
          <Field label={WORDS.name} error={errorOf("name")}>
            {(input) => (
              <input {...input} maxLength={200} value={name} onChange={(event) => setName(event.target.value)} />
            )}
          </Field>
          {user === null && (
            <Field label={WORDS.id} hint={WORDS.idHint} error={errorOf("id")}>
              {(input) => (
                <input {...input} maxLength={200} value={id} onChange={(event) => setId(event.target.value)} />
              )}
            </Field>
          )}
        </>
      )}
    </FormDialog>
  );
}

function pathOf(user: User): string {
  return `v1/admin/users/${encodeURIComponent(user.id)}`;
}

function calledOf(user: User): string {
  return user.name || user.id;
}
