import { t } from "../strings";
import { Chart } from "../ui/Chart";
import { compactText, countText } from "../ui/numbers";
import type { AllReports } from "./reports";
import type { Charts } from "./stacks";

const WORDS = t.usage.chart;
const ticks = (values: readonly number[]) => values.map(compactText);

/** Tokens over time, by their kind or by who used them. */
export function TokenChart({ reports, charts }: { reports: AllReports; charts: Charts }) {
  const { span, split } = reports.asked;
  const title = split === "kind" || split === "document" ? WORDS.tokens : WORDS.tokensBy(t.usage.report.splits[split]);
  return (
    <div className="card" data-chart="tokens">
      <h3>{title}</h3>
      {charts.tokens.length === 0 ? (
        <p className="quiet">{split === "document" ? WORDS.noDocumentTokens : WORDS.nothing}</p>
      ) : (
        <Chart
          title={title}
          columnName={WORDS.bucket[span.width]}
          columns={charts.columns}
          series={charts.tokens}
          scale={1n}
          amount={countText}
          ticks={ticks}
        />
      )}
    </div>
  );
}
