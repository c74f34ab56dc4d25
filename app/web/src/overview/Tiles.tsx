import type { ReactNode } from "react";
import { Link } from "wouter";
import type { OverviewBody } from "../api/types";
import { t } from "../strings";
import { type Change, changeOf, costText, figureOf, METRICS, type Metric, numberOf, subOf } from "./metrics";
import { Spark } from "./Spark";

const WORDS = t.overview;
const ARROWS = { more: "▲", less: "▼", same: "" } as const;

interface TilesProps {
  body: OverviewBody;
  chosen: Metric;
  onChoose: (metric: Metric) => void;
}

/** Every figure with its change against the period before and a small chart; one of them is chosen for a large chart. */
export function Tiles({ body, chosen, onChoose }: TilesProps) {
  const before = body.before.result;
  return (
    <ul className="plain-list tiles" aria-label={WORDS.tiles}>
      {METRICS.map((metric) => (
        <li key={metric}>
          <button
            type="button"
            className="card tile"
            data-metric={metric}
            aria-pressed={metric === chosen}
            onClick={() => onChoose(metric)}
          >
            <span className="tile-name">{WORDS.metrics[metric]}</span>
            <span className="tile-figure">{figureOf(metric, body.total)}</span>
            <span className="tile-sub small quiet">{subOf(metric, body.total)}</span>
            <Against
              change={changeOf(metric, body.total, before)}
              before={before === null ? null : figureOf(metric, before)}
            />
            <Spark values={body.data.map(({ result }) => numberOf(metric, result))} />
          </button>
        </li>
      ))}
      <li>
        <Link className="card tile" href="/usage" data-metric="month">
          <span className="tile-name">{WORDS.month}</span>
          <span className="tile-figure">{costText(body.month.expected_cost)}</span>
          <span className="tile-sub small quiet">{WORDS.monthSoFar(costText(body.month.cost))}</span>
        </Link>
      </li>
    </ul>
  );
}

/** The same without numbers, while they are counted: what comes then takes the same room. */
export function TilesToCome() {
  return (
    <ul className="plain-list tiles-to-come" aria-hidden="true">
      {METRICS.map((metric) => (
        <li key={metric}>
          <TileToCome name={WORDS.metrics[metric]}>
            <span className="tile-change small" />
            <span className="spark" />
          </TileToCome>
        </li>
      ))}
      <li>
        <TileToCome name={WORDS.month} />
      </li>
    </ul>
  );
}

function TileToCome({ name, children }: { name: string; children?: ReactNode }) {
  return (
    <span className="card tile">
      <span className="tile-name">{name}</span>
      <span className="tile-figure quiet">{WORDS.none}</span>
      <span className="tile-sub small" />
      {children}
    </span>
  );
}

function Against({ change, before }: { change: Change | null; before: string | null }) {
  if (before === null || before === WORDS.none)
    return <span className="small quiet tile-change">{WORDS.noBefore}</span>;
  return (
    <span className="small tile-change">
      {change !== null && (
        <span className={change.tone}>
          <span aria-hidden="true">{ARROWS[change.direction]}</span> {change.text}
        </span>
      )}{" "}
      <span className="quiet">{WORDS.before(before)}</span>
    </span>
  );
}
