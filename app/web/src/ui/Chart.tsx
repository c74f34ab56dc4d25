import { useEffect, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import "./chart.css";
import { stacked, total } from "./stacking";
import { ui } from "./strings";

export interface ChartColumn {
  /** In the table and while pointed at. */
  label: string;
  /** Under the axis. */
  short: string;
}

export interface ChartSeries {
  id: string;
  label: string;
  /** A colour of the style sheet: `--c1`. */
  color: string;
  /** One amount a column, in the smallest unit. */
  values: readonly bigint[];
}

interface ChartProps {
  title: string;
  /** What a column is, such as “Day”. */
  columnName: string;
  columns: readonly ChartColumn[];
  /** From the bottom up. */
  series: readonly ChartSeries[];
  /** How many of the smallest unit make one of the axis. */
  scale: bigint;
  amount: (amount: bigint) => string;
  /** The numbers of the axis, in words. */
  ticks: (values: readonly number[]) => string[];
  /** What the only series comes to in all, where that is not the sum of its values. */
  overall?: string;
}

const HEIGHT = 240;

/** Stacked bars over time, with what each part comes to, and the same numbers as a table. */
export function Chart({ title, columnName, columns, series, scale, amount, ticks, overall }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const [pointed, setPointed] = useState<number | null>(null);
  const dress = useDress();

  // biome-ignore lint/correctness/useExhaustiveDependencies: it is drawn anew when the page is dressed anew
  useEffect(() => {
    const host = place.current;
    if (host === null) return;
    const plot = new uPlot(
      options({ host, columns, series, ticks, onPoint: setPointed }),
      dataOf(columns, series, scale),
      host,
    );
    const watcher = new ResizeObserver(() => plot.setSize({ width: widthOf(host), height: HEIGHT }));
    watcher.observe(host);
    return () => {
      watcher.disconnect();
      plot.destroy();
    };
  }, [columns, series, scale, ticks, dress]);

  const at = pointed !== null && pointed < columns.length ? pointed : null;
  const said = (values: readonly bigint[]) =>
    at === null ? (overall ?? amount(total(values))) : amount(values[at] ?? 0n);
  return (
    <figure className="chart">
      <div ref={place} className="plot" role="img" aria-label={ui.chart.image(title)} />
      <figcaption className="legend">
        <span className="when">{at === null ? ui.chart.wholeRange : columns[at]?.label}</span>
        {series.map(({ id, label, color, values }) => (
          <span key={id}>
            <span className="swatch" style={{ background: `var(${color})` }} /> {label} <b>{said(values)}</b>
          </span>
        ))}
        {series.length > 1 && (
          <span>
            {ui.chart.total} <b>{said(sums(series, columns.length))}</b>
          </span>
        )}
      </figcaption>
      <details>
        <summary>{ui.chart.asTable}</summary>
        <ChartTable {...{ title, columnName, columns, series, amount, overall }} />
      </details>
    </figure>
  );
}

/** The numbers of a chart, exactly: each cell's `value` is the integer that was drawn. */
function ChartTable({
  title,
  columnName,
  columns,
  series,
  amount,
  overall,
}: Pick<ChartProps, "title" | "columnName" | "columns" | "series" | "amount"> & { overall: string | undefined }) {
  const cell = (value: bigint) => <data value={String(value)}>{amount(value)}</data>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard
    <section className="scroll-x" aria-label={title} tabIndex={0}>
      <table>
        <caption className="visually-hidden">{title}</caption>
        <thead>
          <tr>
            <th scope="col">{columnName}</th>
            {series.map(({ id, label }) => (
              <th scope="col" className="number" key={id}>
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {columns.map(({ label }, column) => (
            <tr key={label}>
              <th scope="row">{label}</th>
              {series.map(({ id, values }) => (
                <td className="number" key={id}>
                  {cell(values[column] ?? 0n)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">{ui.chart.total}</th>
            {series.map(({ id, values }) => (
              <td className="number" key={id}>
                {overall ?? cell(total(values))}
              </td>
            ))}
          </tr>
        </tfoot>
      </table>
    </section>
  );
}

/** How the page is dressed at the moment, which a canvas has to be told: changes when it does. */
function useDress(): number {
  const [dress, setDress] = useState(0);
  useEffect(() => {
    const turn = () => setDress((before) => before + 1);
    const system = window.matchMedia("(prefers-color-scheme: dark)");
    window.addEventListener("footnote-theme", turn);
    system.addEventListener("change", turn);
    return () => {
      window.removeEventListener("footnote-theme", turn);
      system.removeEventListener("change", turn);
    };
  }, []);
  return dress;
}

function dataOf(columns: readonly ChartColumn[], series: readonly ChartSeries[], scale: bigint): uPlot.AlignedData {
  const heights = stacked(
    series.map(({ values }) => values),
    columns.length,
    scale,
  );
  // The highest is drawn first, and the others over it.
  return [columns.map((_, column) => column), ...heights.reverse()];
}

function options(given: {
  host: HTMLElement;
  columns: readonly ChartColumn[];
  series: readonly ChartSeries[];
  /** The numbers of the axis, in words. */
  ticks: (values: readonly number[]) => string[];
  onPoint: (column: number | null) => void;
}): uPlot.Options {
  const { host, columns, series, ticks, onPoint } = given;
  const style = getComputedStyle(document.documentElement);
  const color = (name: string) => style.getPropertyValue(name).trim();
  const font = `12px ${color("--text") || "sans-serif"}`;
  const axis: uPlot.Axis = { stroke: color("--quiet"), font, ticks: { show: false }, grid: { show: false } };
  const bars = uPlot.paths.bars?.({ size: [0.72, 56] });
  return {
    width: widthOf(host),
    height: HEIGHT,
    padding: [10, 6, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false, setScale: false } },
    scales: {
      x: { time: false, range: [-0.5, Math.max(0.5, columns.length - 0.5)] },
      y: { range: (_, _least, most) => [0, most > 0 ? most * 1.06 : 1] },
    },
    axes: [
      {
        ...axis,
        incrs: [1, 2, 3, 4, 6, 7, 8, 12, 14, 21, 28, 56, 112],
        space: 64,
        size: 28,
        values: (_, places) => places.map((place) => columns[place]?.short ?? ""),
      },
      {
        ...axis,
        grid: { show: true, stroke: color("--line"), width: 1 },
        values: (_, places) => ticks(places),
        size: (_, said) => 18 + 7 * Math.max(2, ...(said ?? []).map((one) => one.length)),
      },
    ],
    series: [
      {},
      ...[...series].reverse().map((one) => ({
        label: one.label,
        fill: color(one.color),
        width: 0,
        points: { show: false },
        ...(bars === undefined ? {} : { paths: bars }),
      })),
    ],
    hooks: { setCursor: [(plot) => onPoint(plot.cursor.idx ?? null)] },
  };
}

function widthOf(host: HTMLElement): number {
  return Math.max(160, Math.floor(host.clientWidth));
}

function sums(series: readonly ChartSeries[], columns: number): bigint[] {
  return Array.from({ length: columns }, (_, column) => total(series.map(({ values }) => values[column] ?? 0n)));
}
