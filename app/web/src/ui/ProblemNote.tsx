import { Problem } from "../api/http";
import { t } from "../strings";
import { BudgetNote } from "./BudgetNote";
import { againIn, momentText } from "./numbers";
import { refusedBudget } from "./refusedBudget";

/** Waiting no longer than this is worth a button that tries again, in seconds. */
const SOON = 120;

/** A failure in words, with what the server says about it and the request's id for whoever is asked to help. */
export function ProblemNote({ problem, onRetry }: { problem: unknown; onRetry?: () => void }) {
  const budget = refusedBudget(problem);
  const hopeless = budget !== null && !(problem instanceof Problem && isSoon(problem.retryAfter, budget.resetAt));
  return (
    <div className="problem" role="alert">
      {budget === null ? <p>{wordsOf(problem)}</p> : <BudgetNote budget={budget} />}
      {problem instanceof Problem && problem.requestId !== null && (
        <p className="quiet small">
          {t.problem.request} <code>{problem.requestId}</code>
        </p>
      )}
      {onRetry !== undefined && !hopeless && (
        <button type="button" onClick={onRetry}>
          {t.problem.retry}
        </button>
      )}
    </div>
  );
}

function isSoon(retryAfter: number | null, resetAt: number | null): boolean {
  const wait = retryAfter ?? (resetAt === null ? null : resetAt - Date.now() / 1000);
  return wait !== null && wait <= SOON;
}

/** A failure in one sentence, or in few. */
export function wordsOf(problem: unknown): string {
  if (!(problem instanceof Problem)) return t.problem.ours;
  if (problem.status === 0) return t.problem.unreachable;
  const said = problem.detail || problem.title || t.problem.ours;
  const budget = refusedBudget(problem);
  if (budget !== null) {
    const words = t.ui.budget;
    const when = budget.resetAt === null ? "" : ` ${words.resetsSentence(momentText(budget.resetAt))}`;
    return `${said}${when} ${words.ask}`;
  }
  if (problem.retryAfter === null) return said;
  return `${withoutAgain(said)} ${t.problem.again(againIn(problem.retryAfter))}`;
}

/** What the server says without its own advice to try again some time: when is said more exactly. */
function withoutAgain(said: string): string {
  const at = said.toLowerCase().lastIndexOf("try again");
  if (at <= 0 || said.slice(at).trimEnd().slice(0, -1).includes(".")) return said;
  const before = said.slice(0, at).trimEnd();
  return /[;,:]$/.test(before) ? `${before.slice(0, -1)}.` : before;
}
