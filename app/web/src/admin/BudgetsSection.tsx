import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useEvery } from "../api/every";
import { request } from "../api/http";
import type { Budget, Collection, Key, User } from "../api/types";
import { CsvButton } from "../overview/CsvButton";
import { t } from "../strings";
import { BudgetMeter } from "../ui/BudgetMeter";
import { MoreButton } from "../ui/MoreButton";
import { useNotices } from "../ui/notices";
import { ProblemNote } from "../ui/ProblemNote";
import { BudgetForm } from "./BudgetForm";
import { Confirm } from "./Form";
import { useList } from "./lists";
import { Section } from "./Section";

const WORDS = t.admin.budgets;

type Open = { what: "create" } | { what: "edit" | "remove" | "reset"; budget: Budget } | null;

/** The tenant's budgets: what is taken of each, and changing them. */
export function BudgetsSection() {
  const queries = useQueryClient();
  const say = useNotices();
  const [open, setOpen] = useState<Open>(null);
  const found = useList<Budget>(["budgets", "list"], "v1/admin/budgets", {}, { every: 30_000 });
  const whom = useWhom(found.items);

  async function done(text: string) {
    setOpen(null);
    say(text);
    await Promise.all([
      queries.invalidateQueries({ queryKey: ["budgets"] }),
      queries.invalidateQueries({ queryKey: ["usage", "own"] }),
    ]);
  }

  return (
    <Section
      title={t.admin.sections.budgets}
      lead={WORDS.lead}
      actions={
        <>
          <CsvButton of={t.admin.sections.budgets} path="v1/admin/budgets" query={{}} />
          <button type="button" className="primary" onClick={() => setOpen({ what: "create" })}>
            {WORDS.create}
          </button>
        </>
      }
    >
      {found.isPending && <p className="quiet">{t.loading}</p>}
      {found.isError && <ProblemNote problem={found.error} onRetry={() => void found.refetch()} />}
      {found.isSuccess && found.items.length === 0 && <p className="quiet">{WORDS.none}</p>}
      <ul className="plain-list budgets">
        {found.items.map((budget) => (
          <li key={budget.id} className="card">
            <BudgetMeter budget={budget} whom={whom(budget)} />
            {budget.thresholds.length > 0 && (
              <p className="quiet small">{WORDS.warnings(budget.thresholds.join(", "))}</p>
            )}
            <div className="row">
              <button type="button" onClick={() => setOpen({ what: "edit", budget })}>
                {WORDS.edit}
              </button>
              <button type="button" onClick={() => setOpen({ what: "reset", budget })}>
                {WORDS.reset}
              </button>
              <button type="button" className="danger" onClick={() => setOpen({ what: "remove", budget })}>
                {WORDS.remove}
              </button>
            </div>
          </li>
        ))}
      </ul>
      <MoreButton list={found} />
      {open?.what === "create" && (
        <BudgetForm before={null} onClose={() => setOpen(null)} onDone={() => done(WORDS.saved)} />
      )}
      {open?.what === "edit" && (
        <BudgetForm before={open.budget} onClose={() => setOpen(null)} onDone={() => done(WORDS.saved)} />
      )}
      {open?.what === "remove" && (
        <Confirm
          title={WORDS.removeTitle}
          text={WORDS.removeText}
          action={WORDS.remove}
          onClose={() => setOpen(null)}
          onConfirm={async () => {
            await request(`v1/admin/budgets/${open.budget.id}`, { method: "DELETE" });
            await done(WORDS.removed);
          }}
        />
      )}
      {open?.what === "reset" && (
        <Confirm
          title={WORDS.resetTitle}
          text={WORDS.resetText}
          action={WORDS.reset}
          onClose={() => setOpen(null)}
          onConfirm={async () => {
            await request(`v1/admin/budgets/${open.budget.id}/reset`, { method: "POST" });
            await done(WORDS.resetDone);
          }}
        />
      )}
    </Section>
  );
}

/** Whose use a budget counts, by name. */
function useWhom(budgets: readonly Budget[]): (budget: Budget) => string | undefined {
  const has = (scope: string) => budgets.some(({ scope_type }) => scope_type === scope);
  const keys = useEvery<Key>("keys", "v1/admin/keys", has("key"));
  const users = useEvery<User>("users", "v1/admin/users", has("user"));
  const collections = useEvery<Collection>("collections", "v1/collections", has("collection"));
  const named: Record<string, readonly { id: string; name: string }[]> = {
    key: keys,
    user: users,
    collection: collections,
  };
  return ({ scope_type, scope_id }) => {
    const name = named[scope_type]?.find(({ id }) => id === scope_id)?.name;
    return name ? `${WORDS.of[scope_type] ?? scope_type} ${name}` : undefined;
  };
}
