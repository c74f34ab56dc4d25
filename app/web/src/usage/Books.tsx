import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { address, problemOf, request } from "../api/http";
import type { LedgerReconciliation, Readiness } from "../api/types";
import { t } from "../strings";
import { countText, momentText } from "../ui/numbers";
import { ProblemNote } from "../ui/ProblemNote";
import { lastLook } from "./lastLook";

const WORDS = t.usage.books;

/** Whether the bill agrees with what the models counted: what the server found last, and a look on demand. */
export function Books() {
  const queries = useQueryClient();
  const looked = useQuery({ queryKey: ["health", "ready"], queryFn: ({ signal }) => readiness(signal) });
  const compare = useMutation({
    mutationFn: () => request<LedgerReconciliation>("v1/admin/usage/reconciliation"),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["health"] }),
  });
  const last = looked.data === undefined ? null : lastLook(looked.data.checks);
  const ok = compare.data?.ok ?? last?.ok ?? null;
  const asOf = compare.data?.as_of ?? last?.asOf ?? null;
  return (
    <section aria-labelledby="books">
      <h2 id="books">{WORDS.title}</h2>
      <p className="quiet">{WORDS.lead}</p>
      <p className="row" role="status">
        <span className={`badge ${ok === null ? "" : ok ? "good" : "bad"}`}>
          {ok === null ? WORDS.unknown : ok ? WORDS.agree : WORDS.disagree}
        </span>
        {asOf !== null && <span className="quiet small">{WORDS.asOf(momentText(asOf))}</span>}
        {compare.data === undefined && last !== null && last.mismatches.length > 0 && (
          <span>{WORDS.mismatches(last.mismatches.join(", "))}</span>
        )}
      </p>
      <button type="button" disabled={compare.isPending} onClick={() => compare.mutate()}>
        {compare.isPending ? t.usage.report.loading : WORDS.compare}
      </button>
      {compare.isError && <ProblemNote problem={compare.error} />}
      {compare.data !== undefined && <Checks found={compare.data} />}
    </section>
  );
}

function Checks({ found }: { found: LedgerReconciliation }) {
  const rows = found.checks.map((check, place) => ({ ...check, key: `${place} ${check.name}` }));
  return (
    <table className="cards-on-phone">
      <thead>
        <tr>
          <th scope="col">{WORDS.check}</th>
          <th scope="col" className="number">
            {WORDS.expected}
          </th>
          <th scope="col" className="number">
            {WORDS.found}
          </th>
          <th scope="col">{WORDS.result}</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ key, name, detail, expected, found: told, ok }) => (
          <tr key={key}>
            <th scope="row" className="name">
              {name.replaceAll("_", " ")}
              <div className="quiet small">{detail}</div>
            </th>
            <td className="number" data-label={WORDS.expected}>
              {expected === null ? "–" : countText(expected)}
            </td>
            <td className="number" data-label={WORDS.found}>
              {told === null ? "–" : countText(told)}
            </td>
            <td data-label={WORDS.result}>
              <span className={`badge ${ok ? (expected === null ? "" : "good") : "bad"}`}>
                {ok ? (expected === null ? WORDS.skipped : WORDS.ok) : WORDS.wrong}
              </span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** `/readyz` says as much when it is not ready, with another status. */
async function readiness(signal: AbortSignal): Promise<Readiness> {
  const response = await fetch(address("readyz"), { signal });
  if (response.status !== 200 && response.status !== 503) throw await problemOf(response);
  return (await response.json()) as Readiness;
}
