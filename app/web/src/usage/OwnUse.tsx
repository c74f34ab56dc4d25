import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { request } from "../api/http";
import type { Collection, OwnBudget, OwnPeriod, OwnUsage, Page } from "../api/types";
import { useSession } from "../session/session";
import { t } from "../strings";
import { BudgetMeter } from "../ui/BudgetMeter";
import { moneyText, unitsOf } from "../ui/money";
import { countText, percentText } from "../ui/numbers";
import { ProblemNote } from "../ui/ProblemNote";

const WORDS = t.usage.own;

/** What somebody used themselves, and what their budgets leave them. */
export function OwnUse() {
  const own = useQuery({
    queryKey: ["usage", "own"],
    queryFn: ({ signal }) => request<OwnUsage>("v1/usage", { signal }),
    refetchInterval: 60_000,
  });
  if (own.isPending) return <p className="quiet">{t.loading}</p>;
  if (own.isError) return <ProblemNote problem={own.error} onRetry={() => void own.refetch()} />;
  const { today, month, all_time, budgets, tz } = own.data;
  return (
    <>
      <section aria-labelledby="own-use">
        <h2 id="own-use">{WORDS.title}</h2>
        <div className="cards">
          <PeriodCard name={WORDS.today} period={today} />
          <PeriodCard name={WORDS.month} period={month} />
          <PeriodCard name={WORDS.always} period={all_time} />
        </div>
        <p className="quiet small">{WORDS.clock(tz)}</p>
      </section>
      <OwnBudgets budgets={budgets} />
    </>
  );
}

function PeriodCard({ name, period }: { name: string; period: OwnPeriod }) {
  const { num_answers: answers, completions, embeddings, rerank, judge, num_unpriced: unpriced } = period;
  const { input_tokens: read, output_tokens: written, input_cached_tokens: cached } = completions;
  const { value, currency } = period.cost;
  const tokens = read + written + embeddings.input_tokens + rerank.input_tokens + judge.input_tokens;
  const unknown = unpriced > 0 ? WORDS.noPrice : "–";
  return (
    <article className="card">
      <h3>{name}</h3>
      <p className="figure">{WORDS.tokens(countText(tokens))}</p>
      <ul className="plain-list quiet small">
        <li>{WORDS.answers(countText(answers), answers)}</li>
        {read > 0 && (
          <li>
            {WORDS.read(countText(read))}
            {cached > 0 && `, ${WORDS.cached(percentText(cached / read))}`}
          </li>
        )}
        {written > 0 && <li>{WORDS.written(countText(written))}</li>}
        <li>{WORDS.embedded(countText(embeddings.input_tokens))}</li>
        {rerank.input_tokens > 0 && <li>{WORDS.ranked(countText(rerank.input_tokens))}</li>}
        {judge.input_tokens > 0 && <li>{WORDS.found(countText(judge.input_tokens))}</li>}
      </ul>
      <p className="cost">
        {WORDS.cost}: <b>{value === null ? unknown : moneyText(unitsOf(value), currency)}</b>
        {value !== null && unpriced > 0 && (
          <span className="quiet small"> {WORDS.unpriced(countText(unpriced), unpriced)}</span>
        )}
      </p>
    </article>
  );
}

function OwnBudgets({ budgets }: { budgets: readonly OwnBudget[] }) {
  const session = useSession();
  const named = budgets.some(({ scope_type }) => scope_type === "collection");
  const collections = useQuery({
    queryKey: ["collections", "names"],
    queryFn: ({ signal }) => request<Page<Collection>>("v1/collections", { query: { limit: 500 }, signal }),
    enabled: named,
  });
  function whom({ scope_type, scope_id }: OwnBudget): string | undefined {
    if (scope_type === "user") return t.usage.budgets.you;
    if (scope_type === "key") return t.usage.budgets.yourKey;
    if (scope_type !== "collection") return undefined;
    const found = collections.data?.data.find(({ id }) => id === scope_id);
    return t.usage.budgets.collection(found?.name ?? scope_id);
  }
  return (
    <section aria-labelledby="own-budgets">
      <h2 id="own-budgets">{t.usage.budgets.title}</h2>
      {budgets.length === 0 && <p className="quiet">{t.usage.budgets.none}</p>}
      <ul className="plain-list budgets">
        {budgets.map((budget) => (
          <li key={budget.id}>
            <BudgetMeter budget={budget} whom={whom(budget)} />
          </li>
        ))}
      </ul>
      {session.role === "admin" && session.collections === null && (
        <p>
          <Link href="/admin/budgets">{t.usage.budgets.manage}</Link>
        </p>
      )}
    </section>
  );
}
