import type { OwnBudget } from "../api/types";
import { Meter } from "./Meter";
import { moneyText, unitsOf } from "./money";
import { countText, momentText } from "./numbers";
import { ui } from "./strings";

const WORDS = ui.budget;

/** A budget (of `whom`, where a better name than its id is known): what it is for, how much of it is taken, what is left, and when it begins again. */
export function BudgetMeter({ budget, whom }: { budget: OwnBudget; whom?: string | undefined }) {
  const limit = amountOf(budget.limit);
  const [used, held] = [amountOf(budget.used), amountOf(budget.reserved)];
  const said = (amount: number | string) => saidOf(amount, budget);
  const title = titleOf(budget, whom);
  const parts = [
    WORDS.used(said(budget.used)),
    ...(held > 0n ? [WORDS.held(said(budget.reserved))] : []),
    WORDS.left(said(budget.remaining)),
  ];
  return (
    <div className="budget">
      <p className="row">
        <strong>{title}</strong>
        {budget.enforcement === "soft" && <span className="badge">{WORDS.soft}</span>}
        {amountOf(budget.remaining) === 0n && <span className="badge bad">{WORDS.full}</span>}
      </p>
      <Meter share={part(used, limit)} held={part(held, limit)} label={title} text={parts.join(", ")} />
      <p className="quiet small">
        {parts.join(" · ")} ·{" "}
        {budget.reset_at === null ? WORDS.never : WORDS.resets(momentText(budget.reset_at, budget.tz))}
      </p>
    </div>
  );
}

/** An amount of a budget in words: tokens are counts, money is a decimal string. */
export function saidOf(amount: number | string, budget: Pick<OwnBudget, "unit" | "currency">): string {
  if (budget.unit === "cost") return moneyText(amountOf(amount), budget.currency ?? "usd");
  return WORDS.tokens(countText(amountOf(amount)));
}

/** What a budget is for, such as `10,000 tokens a day, user ada`. */
export function titleOf(budget: OwnBudget, whom: string = whomOf(budget)): string {
  const period = WORDS.period[budget.period] ?? budget.period;
  return WORDS.title(saidOf(budget.limit, budget), period, whom);
}

export function amountOf(amount: number | string): bigint {
  return typeof amount === "number" ? BigInt(amount) : unitsOf(amount);
}

function part(amount: bigint, limit: bigint): number {
  if (limit === 0n) return amount > 0n ? 1 : 0;
  return Number((amount * 10_000n) / limit) / 10_000;
}

/** Whose calls count, by the id of whom it is. */
function whomOf({ scope_type, scope_id }: OwnBudget): string {
  const kind = WORDS.of[scope_type] ?? scope_type;
  return scope_type === "tenant" ? kind : `${kind} ${scope_id}`;
}
