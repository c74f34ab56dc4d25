/** The reports as what both charts draw, made once for a report. */
import { useMemo } from "react";
import { t } from "../strings";
import type { ChartColumn, ChartSeries } from "../ui/Chart";
import { colorsOf } from "./colors";
import { columnsOf, seriesOf } from "./columns";
import { type AllReports, costParts, KINDS, type KindName, tokenParts } from "./reports";
import { stackOf } from "./stack";

export interface Charts {
  columns: ChartColumn[];
  /** Empty where they are not known by what is asked for: by document. */
  tokens: ChartSeries[];
  costs: ChartSeries[];
}

export function useCharts(reports: AllReports, nameOf: (group: string) => string): Charts {
  const stacks = useMemo(() => stacksOf(reports), [reports]);
  return useMemo(() => {
    const { split } = reports.asked;
    const { columns, tokens, costs, colors } = stacks;
    const kindOf = (kind: string) => t.usage.kinds[kind as KindName];
    return {
      columns,
      tokens: split === "document" ? [] : seriesOf(tokens, split === "kind" ? kindOf : nameOf, colors),
      costs: seriesOf(costs, split === "kind" ? () => t.usage.chart.cost : nameOf, colorsOf(costs, colors)),
    };
  }, [reports, stacks, nameOf]);
}

function stacksOf(reports: AllReports) {
  const { span, zone, split } = reports.asked;
  const starts = reports.costs.map(({ start_time }) => start_time);
  const tokens = stackOf(starts, tokenParts(reports, split), split === "kind" ? { order: KINDS } : {});
  return {
    columns: columnsOf(starts, span.width, zone),
    tokens,
    costs: stackOf(starts, costParts(reports.costs, split)),
    colors: colorsOf(tokens),
  };
}
