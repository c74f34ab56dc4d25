import { useState } from "react";
import { t } from "../strings";
import { moneyText } from "../ui/money";
import { countText } from "../ui/numbers";
import { type AllReports, currencyOf, type GroupTotals, KINDS, together, tokensOf, totalsOf } from "./reports";

const WORDS = t.usage.table;
const MOST = 10;

interface TotalsTableProps {
  reports: AllReports;
  nameOf: (group: string) => string;
}

/** What each group took over the whole range; those after the first ten together, unless all are asked for. */
export function TotalsTable({ reports, nameOf }: TotalsTableProps) {
  const [all, setAll] = useState(false);
  const { split } = reports.asked;
  const totals = totalsOf(reports, split);
  if (totals.length === 0) return null;
  const currency = currencyOf(reports.costs);
  const kinds = KINDS.filter((kind) => totals.some((group) => group.kinds[kind] > 0n));
  const shown = all || totals.length <= MOST + 1 ? totals : totals.slice(0, MOST);
  const rest = totals.slice(shown.length);

  const row = (name: string, group: GroupTotals) => (
    <>
      <th scope="row" className="name">
        {name}
      </th>
      <td className="number" data-label={WORDS.calls}>
        {countText(group.calls)}
      </td>
      {kinds.map((kind) => (
        <td className="number" data-label={t.usage.kinds[kind]} key={kind}>
          {countText(group.kinds[kind])}
        </td>
      ))}
      <td className="number" data-label={t.usage.chart.tokens}>
        <data value={String(tokensOf(group))}>{countText(tokensOf(group))}</data>
      </td>
      <td className="number" data-label={t.usage.chart.cost}>
        {group.cost === null ? "–" : <data value={String(group.cost)}>{moneyText(group.cost, currency)}</data>}
      </td>
    </>
  );

  return (
    <section aria-labelledby="totals" data-table="totals">
      <h3 id="totals">{WORDS.title}</h3>
      <table className="cards-on-phone">
        <thead>
          <tr>
            <th scope="col">{t.usage.report.splits[split]}</th>
            <th scope="col" className="number">
              {WORDS.calls}
            </th>
            {kinds.map((kind) => (
              <th scope="col" className="number" key={kind}>
                {t.usage.kinds[kind]}
              </th>
            ))}
            <th scope="col" className="number">
              {t.usage.chart.tokens}
            </th>
            <th scope="col" className="number">
              {t.usage.chart.cost}
            </th>
          </tr>
        </thead>
        <tbody>
          {shown.map((group) => (
            <tr key={group.group}>{row(nameOf(group.group), group)}</tr>
          ))}
          {rest.length > 0 && <tr>{row(t.usage.chart.others(countText(rest.length)), together(rest))}</tr>}
        </tbody>
        <tfoot>
          <tr>{row(WORDS.total, together(totals))}</tr>
        </tfoot>
      </table>
      {totals.length > MOST + 1 && (
        <button type="button" onClick={() => setAll(!all)}>
          {all ? WORDS.fewer : WORDS.all}
        </button>
      )}
    </section>
  );
}
