import { useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { t } from "../strings";
import { momentText } from "../ui/numbers";
import { ProblemNote } from "../ui/ProblemNote";
import { ownZone } from "../ui/zones";
import { CostChart } from "./CostChart";
import { DocumentsTable, useDocumentUsage } from "./DocumentsTable";
import { Files } from "./Files";
import { useNames } from "./names";
import type { Asked } from "./query";
import { type Chosen, RangePicker } from "./RangePicker";
import { spanOf, wrongWith } from "./range";
import { type AllReports, useReports } from "./reports";
import { useCharts } from "./stacks";
import { TokenChart } from "./TokenChart";
import { TotalsTable } from "./TotalsTable";

/** Everybody's use over time: charts, totals, the documents that cost most, and all of it as files. */
export function ReportPanel() {
  const queries = useQueryClient();
  const [chosen, setChosen] = useState<Chosen>(() => ({
    range: { preset: "days30", from: "", to: "" },
    zone: ownZone(),
    split: "kind",
  }));
  // What was last complete stays shown while somebody types a date.
  const [asked, setAsked] = useState<Asked>(() => askedOf(chosen));

  function change(next: Chosen) {
    setChosen(next);
    if (wrongWith(next.range) === null) setAsked(askedOf(next));
  }
  function refresh() {
    setAsked(askedOf(chosen));
    void queries.invalidateQueries({ queryKey: ["usage"] });
  }

  return (
    <section aria-labelledby="everybody">
      <h2 id="everybody">{t.usage.report.title}</h2>
      <RangePicker chosen={chosen} onChange={change} />
      <Reports asked={asked} onRefresh={refresh} />
    </section>
  );
}

function Reports({ asked, onRefresh }: { asked: Asked; onRefresh: () => void }) {
  const reports = useReports(asked);
  const documents = useDocumentUsage(asked.span, "cost");
  const shown = reports.data?.asked ?? asked;
  const named = useMemo(() => documents.data?.pages.flatMap(({ data }) => data) ?? [], [documents.data]);
  const nameOf = useNames(shown.split, named);

  if (reports.isError) return <ProblemNote problem={reports.error} onRetry={onRefresh} />;
  if (reports.isPending) return <p className="quiet">{t.usage.report.loading}</p>;
  return (
    <>
      <p className="row quiet small">
        <span>{t.usage.report.asOf(momentText(reports.data.asOf, shown.zone))}</span>
        <button type="button" onClick={onRefresh}>
          {t.usage.report.refresh}
        </button>
      </p>
      <BothCharts reports={reports.data} nameOf={nameOf} waiting={reports.isPlaceholderData} />
      {shown.split !== "kind" && shown.split !== "document" && <TotalsTable reports={reports.data} nameOf={nameOf} />}
      <DocumentsTable span={asked.span} />
      <Files asked={asked} />
    </>
  );
}

interface BothChartsProps {
  reports: AllReports;
  nameOf: (group: string) => string;
  waiting: boolean;
}

function BothCharts({ reports, nameOf, waiting }: BothChartsProps) {
  const charts = useCharts(reports, nameOf);
  return (
    <div className={waiting ? "charts waiting" : "charts"} aria-busy={waiting}>
      <TokenChart reports={reports} charts={charts} />
      <CostChart reports={reports} charts={charts} />
    </div>
  );
}

function askedOf({ range, zone, split }: Chosen): Asked {
  return { span: spanOf(range, zone, Date.now() / 1000), zone, split };
}
