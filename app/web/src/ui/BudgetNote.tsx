import { useQuery } from "@tanstack/react-query";
import { request } from "../api/http";
import type { OwnUsage } from "../api/types";
import { useSession } from "../session/session";
import { amountOf, saidOf, titleOf } from "./BudgetMeter";
import { momentText } from "./numbers";
import type { RefusedBudget } from "./refusedBudget";
import { ui } from "./strings";

const WORDS = ui.budget;

/** Says of a budget that refused a call what it is for, how much of it is taken, when it begins again, and whom to ask. */
export function BudgetNote({ budget }: { budget: RefusedBudget }) {
  const { role } = useSession();
  const own = useQuery({
    queryKey: ["usage", "own"],
    queryFn: ({ signal }) => request<OwnUsage>("v1/usage", { signal }),
  });
  const known = own.data?.budgets.find(({ id }) => id === budget.id);
  const terms = { unit: budget.unit, currency: known?.currency ?? null };
  const said = (amount: number | string) => saidOf(amount, terms);
  return (
    <>
      <p>
        {budget.said}
        {known !== undefined && ` ${WORDS.which(titleOf(known))}`}
      </p>
      <p>
        {WORDS.usedOf(said(budget.used), said(budget.limit))}
        {amountOf(budget.reserved) > 0n && ` ${WORDS.heldSentence(said(budget.reserved))}`}{" "}
        {budget.resetAt !== null && WORDS.resetsSentence(momentText(budget.resetAt, known?.tz))}
        {budget.resetAt === null && known?.period === "total" && WORDS.neverSentence}
      </p>
      <p>{role === "admin" ? <a href="#/admin/budgets">{WORDS.change}</a> : WORDS.ask}</p>
    </>
  );
}
