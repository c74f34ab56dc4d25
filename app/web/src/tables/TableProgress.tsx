/** How far a table is, why it does not go on, and what it cost. */
import type { AnswerTablePage } from "../api/types";
import { useSession } from "../session/session";
import { Meter } from "../ui/Meter";
import { moneyText, unitsOf } from "../ui/money";
import { countText } from "../ui/numbers";
import { doneOf } from "./cells";
import { words } from "./strings";

const COUNTED = ["answered", "unsure", "refused", "failed"] as const;

export function TableProgress({ table }: { table: AnswerTablePage }) {
  const { user_id: user } = useSession();
  const { progress, state, state_detail: why, usage } = table;
  const done = doneOf(table);
  const counts = COUNTED.filter((one) => progress[one] > 0).map((one) => words.counts[one](progress[one]));
  const price = usage.cost.value === null ? null : moneyText(unitsOf(usage.cost.value), usage.cost.currency);
  const bill = [
    words.tokens(countText(usage.total_tokens)),
    ...(price === null ? [] : [price]),
    ...(usage.num_unpriced > 0 ? [words.unpriced(usage.num_unpriced)] : []),
  ];
  return (
    <div className="stack table-progress">
      <p>
        <span role="status" className={state === "stopped" ? "badge warn" : "badge"}>
          {words.states[state]}
        </span>{" "}
        {[words.extent(table.questions.length, table.documents), words.done(done, progress.total), ...counts].join(
          " · ",
        )}
      </p>
      {state === "running" && (
        <Meter
          share={progress.total === 0 ? 1 : done / progress.total}
          label={words.progress}
          text={words.done(done, progress.total)}
          plain
        />
      )}
      {why !== null && (
        <p className={state === "stopped" ? "problem" : "quiet small"} role={state === "stopped" ? "alert" : undefined}>
          {state === "stopped" ? words.stopped : words.pausing} {why}
        </p>
      )}
      {table.user_id !== user && <p className="quiet small">{words.others(table.user_id)}</p>}
      <p className="quiet small">{bill.join(" · ")}</p>
    </div>
  );
}
