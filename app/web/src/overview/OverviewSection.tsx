import { useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { Section } from "../admin/Section";
import type { OverviewBody } from "../api/types";
import { t } from "../strings";
import { Chart } from "../ui/Chart";
import { momentText } from "../ui/numbers";
import { ProblemNote } from "../ui/ProblemNote";
import { ownZone } from "../ui/zones";
import { columnsOf } from "../usage/columns";
import { type Chosen, RangePicker } from "../usage/RangePicker";
import { type Width, wrongWith } from "../usage/range";
import { CsvButton } from "./CsvButton";
import { Disliked } from "./Disliked";
import { Expensive } from "./Expensive";
import { drawnOf, type Metric } from "./metrics";
import "./overview.css";
import { People } from "./People";
import { type AskedOverview, askedOf, overviewQuery, PATHS, useOverview } from "./queries";
import { Tiles, TilesToCome } from "./Tiles";
import { Unanswered } from "./Unanswered";
import { Unused } from "./Unused";

const WORDS = t.overview;
const PARTS = ["unanswered", "people", "expensive", "unused", "disliked"] as const;

/** How it goes: figures over time beside the period before, and lists of what deserves a look. */
export default function OverviewSection() {
  const queries = useQueryClient();
  const [chosen, setChosen] = useState<Chosen>(() => ({
    range: { preset: "days30", from: "", to: "" },
    zone: ownZone(),
    split: "kind",
  }));
  const [asked, setAsked] = useState<AskedOverview>(() => askedNow(chosen));

  function change(next: Chosen) {
    setChosen(next);
    if (wrongWith(next.range) === null) setAsked(askedNow(next));
  }
  function refresh() {
    setAsked(askedNow(chosen));
    void queries.invalidateQueries({ queryKey: ["overview"] });
  }

  return (
    <Section title={WORDS.title} lead={WORDS.lead}>
      <div className="overview">
        <RangePicker chosen={chosen} onChange={change} splits={false} />
        <Figures asked={asked} onRefresh={refresh} />
        <nav className="row jump" aria-label={WORDS.jump}>
          {PARTS.map((part) => (
            <button type="button" className="plain" key={part} onClick={() => show(part)}>
              {WORDS[part].title}
            </button>
          ))}
        </nav>
        <Unanswered asked={asked} />
        <People asked={asked} />
        <Expensive asked={asked} />
        <Unused now={asked.span.end} />
        <Disliked />
      </div>
    </Section>
  );
}

function Figures({ asked, onRefresh }: { asked: AskedOverview; onRefresh: () => void }) {
  const found = useOverview(asked);
  const [metric, setMetric] = useState<Metric>("questions");
  if (found.isError) return <ProblemNote problem={found.error} onRetry={onRefresh} />;
  if (found.isPending) {
    return (
      <div aria-busy="true" className="figures">
        <p className="row quiet small overview-as-of" role="status">
          {WORDS.range.loading}
        </p>
        <TilesToCome />
        <div className="card" data-chart="to-come" aria-hidden="true" />
      </div>
    );
  }
  return (
    <div aria-busy={found.isPlaceholderData} className={found.isPlaceholderData ? "figures waiting" : "figures"}>
      <p className="row quiet small overview-as-of">
        <span>{WORDS.range.asOf(momentText(found.data.as_of, asked.zone))}</span>
        <button type="button" onClick={onRefresh}>
          {WORDS.range.refresh}
        </button>
        <CsvButton of={WORDS.title} path={PATHS.overview} query={overviewQuery(asked)} />
      </p>
      <Tiles body={found.data} chosen={metric} onChoose={setMetric} />
      <OverTime body={found.data} metric={metric} zone={asked.zone} />
    </div>
  );
}

/** The chosen figure over time. */
function OverTime({ body, metric, zone }: { body: OverviewBody; metric: Metric; zone: string }) {
  const width = body.bucket_width as Width;
  const columns = useMemo(
    () =>
      columnsOf(
        body.data.map(({ start_time }) => start_time),
        width,
        zone,
      ),
    [body, width, zone],
  );
  const { series, scale, amount, ticks, overall } = useMemo(() => drawnOf(metric, body), [metric, body]);
  const title = WORDS.overTime(WORDS.metrics[metric]);
  return (
    <div className="card" data-chart="overview">
      <h3>{title}</h3>
      {series.length === 0 ? (
        <p className="quiet">{t.usage.chart.nothing}</p>
      ) : (
        <Chart
          title={title}
          columnName={t.usage.chart.bucket[width]}
          columns={columns}
          series={series}
          scale={scale}
          amount={amount}
          ticks={ticks}
          {...(overall === null ? {} : { overall })}
        />
      )}
    </div>
  );
}

function show(part: (typeof PARTS)[number]) {
  const heading = document.getElementById(`overview-${part}`);
  heading?.scrollIntoView({ block: "start" });
  heading?.focus({ preventScroll: true });
}

function askedNow({ range, zone }: Chosen): AskedOverview {
  return askedOf(range, zone, Date.now() / 1000);
}
