import { Problem } from "../api/http";
import { t } from "../strings";

/** A failure in words, with what the server says about it and the request's id for whoever is asked to help. */
export function ProblemNote({ problem, onRetry }: { problem: unknown; onRetry?: () => void }) {
  return (
    <div className="problem" role="alert">
      <p>{wordsOf(problem)}</p>
      {problem instanceof Problem && problem.requestId !== null && (
        <p className="quiet small">
          {t.problem.request} <code>{problem.requestId}</code>
        </p>
      )}
      {onRetry !== undefined && (
        <button type="button" onClick={onRetry}>
          {t.problem.retry}
        </button>
      )}
    </div>
  );
}

/** A failure as one sentence. */
export function wordsOf(problem: unknown): string {
  if (!(problem instanceof Problem)) return t.problem.ours;
  if (problem.status === 0) return t.problem.unreachable;
  const said = problem.detail || problem.title || t.problem.ours;
  return problem.retryAfter === null ? said : `${said} ${t.problem.again(problem.retryAfter)}`;
}
