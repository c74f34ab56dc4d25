import { useMemo } from "react";
import { Link } from "wouter";
import { t } from "../strings";
import { Chart } from "../ui/Chart";
import { axisText, moneyText, ONE } from "../ui/money";
import { countText } from "../ui/numbers";
import { type AllReports, currencyOf, unpricedIn } from "./reports";
import type { Charts } from "./stacks";

const WORDS = t.usage.chart;

/** Costs over time, as the bill has them: corrections made later are in the bucket in which they were made. */
export function CostChart({ reports, charts }: { reports: AllReports; charts: Charts }) {
  const { span, split } = reports.asked;
  const currency = currencyOf(reports.costs);
  const unpriced = unpricedIn(reports.costs);
  const title = split === "kind" ? WORDS.cost : WORDS.costBy(t.usage.report.splits[split]);
  const { amount, ticks } = useMemo(
    () => ({
      amount: (units: bigint) => moneyText(units, currency),
      ticks: (values: readonly number[]) => axisText(values, currency),
    }),
    [currency],
  );
  return (
    <div className="card" data-chart="cost">
      <h3>{title}</h3>
      {charts.costs.length === 0 ? (
        <p className="quiet">{unpriced > 0 ? WORDS.noCost : WORDS.nothing}</p>
      ) : (
        <Chart
          title={title}
          columnName={WORDS.bucket[span.width]}
          columns={charts.columns}
          series={charts.costs}
          scale={ONE}
          amount={amount}
          ticks={ticks}
        />
      )}
      {unpriced > 0 && (
        <p className="quiet small">
          {WORDS.unpriced(countText(unpriced), unpriced)} <Link href="/admin/prices">{WORDS.prices}</Link>
        </p>
      )}
    </div>
  );
}
