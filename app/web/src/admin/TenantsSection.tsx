import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { request } from "../api/http";
import type { KeyWithSecret, Tenant } from "../api/types";
import { useSession } from "../session/session";
import { t } from "../strings";
import { useNotices } from "../ui/notices";
import { momentText } from "../ui/numbers";
import { wordsOf } from "../ui/ProblemNote";
import { SecretDialog } from "../ui/SecretDialog";
import { Confirm, Field, FormDialog } from "./Form";
import { useList } from "./lists";
import { RowButton } from "./RowButton";
import { Section } from "./Section";
import { type Column, List } from "./Table";

const WORDS = t.admin.tenants;
const FIELDS = ["id", "name"] as const;

type Open = { what: "create" } | { what: "disable"; tenant: Tenant } | null;

/** Every tenant of the installation, for its operator. */
export function TenantsSection() {
  const session = useSession();
  const queries = useQueryClient();
  const say = useNotices();
  const [open, setOpen] = useState<Open>(null);
  const [fresh, setFresh] = useState<KeyWithSecret | null>(null);
  const found = useList<Tenant>(["tenants", "list"], "v1/admin/tenants");

  async function changed() {
    await queries.invalidateQueries({ queryKey: ["tenants"] });
  }
  async function keyFor(tenant: Tenant) {
    setFresh(await request<KeyWithSecret>(`v1/admin/tenants/${tenant.id}/keys`, { method: "POST", body: {} }));
  }
  async function disable(tenant: Tenant, disabled: boolean) {
    await request<Tenant>(`v1/admin/tenants/${tenant.id}`, { method: "PATCH", body: { disabled } });
    setOpen(null);
    say(WORDS.changed);
    await changed();
  }
  function attempt(act: Promise<void>) {
    act.catch((error: unknown) => say(wordsOf(error)));
  }

  return (
    <Section
      title={t.admin.sections.tenants}
      lead={WORDS.lead}
      actions={
        <button type="button" className="primary" onClick={() => setOpen({ what: "create" })}>
          {WORDS.create}
        </button>
      }
    >
      <List
        label={t.admin.sections.tenants}
        found={found}
        items={found.items}
        none={WORDS.none}
        keyOf={(tenant) => tenant.id}
        columns={columnsOf(session.tenant_id)}
        actions={(tenant) => (
          <>
            <RowButton of={tenant.name || tenant.id} onClick={() => attempt(keyFor(tenant))}>
              {WORDS.addKey}
            </RowButton>
            {tenant.disabled_at !== null && (
              <RowButton of={tenant.name || tenant.id} onClick={() => attempt(disable(tenant, false))}>
                {WORDS.enable}
              </RowButton>
            )}
            {tenant.disabled_at === null && tenant.id !== session.tenant_id && (
              <RowButton of={tenant.name || tenant.id} danger onClick={() => setOpen({ what: "disable", tenant })}>
                {WORDS.disable}
              </RowButton>
            )}
          </>
        )}
      />
      {open?.what === "create" && (
        <TenantForm
          onClose={() => setOpen(null)}
          onSubmit={async (body) => {
            const made = await request<Tenant>("v1/admin/tenants", { method: "POST", body });
            setOpen(null);
            await changed();
            // The tenant is there whatever comes of its key, which can be made again from its row.
            attempt(keyFor(made));
          }}
        />
      )}
      {open?.what === "disable" && (
        <Confirm
          title={WORDS.disableTitle(open.tenant.name || open.tenant.id)}
          text={WORDS.disableText}
          action={WORDS.disable}
          onConfirm={() => disable(open.tenant, true)}
          onClose={() => setOpen(null)}
        />
      )}
      {fresh !== null && (
        <SecretDialog title={t.admin.secret.title(fresh.name)} secret={fresh.secret} onClose={() => setFresh(null)} />
      )}
    </Section>
  );
}

function columnsOf(yours: string): Column<Tenant>[] {
  return [
    {
      header: WORDS.name,
      cell: (tenant) => (
        <>
          {tenant.name || tenant.id} {tenant.id === yours && <span className="badge">{WORDS.yours}</span>}
        </>
      ),
    },
    { header: WORDS.id, cell: (tenant) => <code>{tenant.id}</code> },
    {
      header: WORDS.state,
      cell: (tenant) =>
        tenant.disabled_at === null ? (
          <span className="badge good">{WORDS.works}</span>
        ) : (
          <span className="badge bad">{WORDS.disabled(momentText(tenant.disabled_at))}</span>
        ),
    },
    { header: WORDS.added, cell: (tenant) => momentText(tenant.created_at) },
  ];
}

interface TenantFormProps {
  onSubmit: (body: { id: string | null; name: string }) => Promise<void>;
  onClose: () => void;
}

function TenantForm({ onSubmit, onClose }: TenantFormProps) {
  const [id, setId] = useState("");
  const [name, setName] = useState("");
  return (
    <FormDialog
      title={WORDS.create}
      submit={WORDS.create}
      fields={FIELDS}
      onSubmit={() => onSubmit({ id: id.trim() || null, name: name.trim() })}
      onClose={onClose}
    >
      {(errorOf) => (
        <>
          <Field label={WORDS.name} error={errorOf("name")}>
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
          <Field label={WORDS.id} hint={WORDS.idHint} error={errorOf("id")}>
            {(input) => <input {...input} maxLength={63} value={id} onChange={(event) => setId(event.target.value)} />}
          </Field>
          <p className="quiet small">{WORDS.firstKey}</p>
        </>
      )}
    </FormDialog>
  );
}
