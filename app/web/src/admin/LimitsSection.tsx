import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useEvery } from "../api/every";
import { request } from "../api/http";
import type { Key, Limits } from "../api/types";
import { useSession } from "../session/session";
import { t } from "../strings";
import { useNotices } from "../ui/notices";
import { countText } from "../ui/numbers";
import { ProblemNote, wordsOf } from "../ui/ProblemNote";
import { type LimitedThing, LimitsForm } from "./LimitsForm";
import { useList } from "./lists";
import { RowButton } from "./RowButton";
import { Section } from "./Section";
import { type Column, Table } from "./Table";

const WORDS = t.admin.limits;

/** What keys, and all of them together, may take in a minute and at once. */
export function LimitsSection() {
  const { tenant_id, operator } = useSession();
  const queries = useQueryClient();
  const say = useNotices();
  const [open, setOpen] = useState<LimitedThing | "choose" | null>(null);
  const keys = useEvery<Key>("keys", "v1/admin/keys");
  const set = useList<Limits>(["limits", "list"], "v1/admin/limits", { limit: 500 });
  const tenant = useQuery({
    queryKey: ["limits", "tenant"],
    queryFn: ({ signal }) => request<Limits>(`v1/admin/limits/tenants/${tenant_id}`, { signal }),
  });

  const nameOf = ({ scope_type, id }: Limits) =>
    scope_type === "tenant" ? WORDS.everybody : (keys.find((key) => key.id === id)?.name ?? id);
  const changeable = (limits: Limits) => limits.scope_type === "key" || operator;
  async function done() {
    setOpen(null);
    say(WORDS.saved);
    await queries.invalidateQueries({ queryKey: ["limits"] });
  }
  function reset(limits: Limits) {
    request(pathOf(limits.scope_type, limits.id), { method: "DELETE" })
      .then(done)
      .catch((error: unknown) => say(wordsOf(error)));
  }

  const rows = [
    ...(tenant.data === undefined ? [] : [tenant.data]),
    ...set.items.filter((one) => one.scope_type === "key"),
  ];
  const failed = [tenant, set].find(({ isError }) => isError);
  return (
    <Section
      title={t.admin.sections.limits}
      lead={WORDS.lead}
      actions={
        <button type="button" className="primary" onClick={() => setOpen("choose")}>
          {WORDS.set}
        </button>
      }
    >
      {failed !== undefined && <ProblemNote problem={failed.error} onRetry={() => void failed.refetch()} />}
      <Table
        label={t.admin.sections.limits}
        items={rows}
        keyOf={({ scope_type, id }) => `${scope_type} ${id}`}
        columns={columnsOf(nameOf)}
        actions={(limits) =>
          changeable(limits) && (
            <>
              <RowButton of={nameOf(limits)} onClick={() => setOpen({ ...limits, name: nameOf(limits) })}>
                {WORDS.edit}
              </RowButton>
              {!limits.is_default && (
                <RowButton of={nameOf(limits)} onClick={() => reset(limits)}>
                  {WORDS.reset}
                </RowButton>
              )}
            </>
          )
        }
      />
      <p className="quiet small">
        {WORDS.onlySet} {!operator && WORDS.operator}
      </p>
      {open !== null && (
        <LimitsForm
          before={open === "choose" ? null : open}
          keys={keys.filter(({ revoked_at }) => revoked_at === null)}
          onClose={() => setOpen(null)}
          onSubmit={async ({ scope_type, id }, body) => {
            await request<Limits>(pathOf(scope_type, id), { method: "PUT", body });
            await done();
          }}
        />
      )}
    </Section>
  );
}

function columnsOf(nameOf: (limits: Limits) => string): Column<Limits>[] {
  const amount = (limit: number | null) => (limit === null ? WORDS.none : countText(limit));
  return [
    { header: WORDS.whose, cell: nameOf },
    { header: WORDS.requests, number: true, cell: (limits) => amount(limits.requests_per_minute) },
    { header: WORDS.tokens, number: true, cell: (limits) => amount(limits.tokens_per_minute) },
    { header: WORDS.concurrent, number: true, cell: (limits) => amount(limits.concurrent_requests) },
    { header: WORDS.state, cell: (limits) => (limits.is_default ? WORDS.defaults : WORDS.own) },
  ];
}

function pathOf(scope: Limits["scope_type"], id: string): string {
  return `v1/admin/limits/${scope}s/${encodeURIComponent(id)}`;
}
