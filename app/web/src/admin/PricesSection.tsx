import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { request } from "../api/http";
import type { Costs, Page, Price, ReportPage } from "../api/types";
import { useSession } from "../session/session";
import { t } from "../strings";
import { useNotices } from "../ui/notices";
import { countText, momentText } from "../ui/numbers";
import { ProblemNote } from "../ui/ProblemNote";
import { PriceForm } from "./PriceForm";
import { type PriceRow, priceTables, stateOf, withoutPrice } from "./priceTables";
import { RerateDialog } from "./RerateDialog";
import { Section } from "./Section";
import { type Column, Table } from "./Table";

const WORDS = t.admin.prices;
const DAYS = 30;

/** What models cost, from when on; entered by the operator, and read by every administrator. */
export function PricesSection() {
  const session = useSession();
  const queries = useQueryClient();
  const say = useNotices();
  const [open, setOpen] = useState<{ model: string } | "rerate" | null>(null);
  const [onlyNow, setOnlyNow] = useState(false);
  const found = useQuery({ queryKey: ["prices", "all"], queryFn: ({ signal }) => allPrices(signal) });
  const unpriced = useQuery({ queryKey: ["usage", "unpriced"], queryFn: ({ signal }) => unpricedCalls(signal) });
  const now = Date.now() / 1000;
  const prices = found.data ?? [];
  const tables = priceTables(prices, now, onlyNow);
  const missing = found.isSuccess ? withoutPrice(unpriced.data ?? new Map(), prices, now) : [];
  return (
    <Section
      title={t.admin.sections.prices}
      lead={WORDS.lead}
      actions={
        session.operator && (
          <>
            <button type="button" onClick={() => setOpen("rerate")}>
              {WORDS.rerate}
            </button>
            <button type="button" className="primary" onClick={() => setOpen({ model: "" })}>
              {WORDS.create}
            </button>
          </>
        )
      }
    >
      {missing.length > 0 && (
        <div className="warning price-missing">
          <p>{WORDS.missing(DAYS)}</p>
          <ul className="plain-list">
            {missing.map(([model, calls]) => (
              <li key={model} className="row">
                <b>{model}</b> {WORDS.missingCalls(calls, countText(calls))}
                {session.operator && (
                  <button type="button" className="small" onClick={() => setOpen({ model })}>
                    {WORDS.set} <span className="visually-hidden">{model}</span>
                  </button>
                )}
              </li>
            ))}
          </ul>
        </div>
      )}
      <label className="check">
        <input type="checkbox" checked={onlyNow} onChange={(event) => setOnlyNow(event.target.checked)} />
        {WORDS.onlyNow}
      </label>
      {found.isPending && <p className="quiet">{t.loading}</p>}
      {found.isError && <ProblemNote problem={found.error} onRetry={() => void found.refetch()} />}
      {found.isSuccess && tables.length === 0 && <p className="quiet">{WORDS.none}</p>}
      {tables.map(({ model, rows }) => (
        <section key={model} className="prices-of" aria-label={model}>
          <div className="row spread">
            <h3>{model}</h3>
            {session.operator && (
              <button type="button" className="plain small" onClick={() => setOpen({ model })}>
                {WORDS.change} <span className="visually-hidden">{model}</span>
              </button>
            )}
          </div>
          <Table
            label={WORDS.of(model)}
            items={rows}
            keyOf={({ meter, price }) => price?.id ?? meter}
            columns={columnsOf(now)}
          />
        </section>
      ))}
      {open !== null && open !== "rerate" && (
        <PriceForm
          model={open.model}
          onClose={() => setOpen(null)}
          onDone={async () => {
            setOpen(null);
            say(WORDS.added);
            await queries.invalidateQueries({ queryKey: ["prices"] });
          }}
        />
      )}
      {open === "rerate" && (
        <RerateDialog
          onClose={() => setOpen(null)}
          onDone={(text) => {
            setOpen(null);
            say(text);
            void queries.invalidateQueries({ queryKey: ["usage"] });
          }}
        />
      )}
    </Section>
  );
}

/** All of them: there are a few a model and a year. */
async function allPrices(signal: AbortSignal): Promise<Price[]> {
  const prices: Price[] = [];
  let cursor: string | null = null;
  do {
    const page: Page<Price> = await request("v1/admin/prices", { query: { limit: 500, cursor }, signal });
    prices.push(...page.data);
    cursor = page.next_cursor;
  } while (cursor !== null);
  return prices;
}

/** Calls of the last days that had no price, by model. */
async function unpricedCalls(signal: AbortSignal): Promise<Map<string, number>> {
  const start = Math.floor(Date.now() / 1000) - DAYS * 86_400;
  const query = { start_time: start, group_by: ["model"], limit: DAYS + 1 };
  const report = await request<ReportPage<Costs & { model: string | null }>>("v1/admin/costs", { query, signal });
  const calls = new Map<string, number>();
  for (const { results } of report.data) {
    for (const { model, num_unpriced } of results) {
      if (model !== null) calls.set(model, (calls.get(model) ?? 0) + (num_unpriced ?? 0));
    }
  }
  return calls;
}

function columnsOf(now: number): Column<PriceRow>[] {
  return [
    { header: WORDS.meter, cell: ({ meter }) => WORDS.meters[meter] ?? meter },
    {
      header: WORDS.price,
      number: true,
      cell: ({ price }) =>
        price === null ? "–" : `${trimmed(price.price_per_million)} ${price.currency.toUpperCase()}`,
    },
    { header: WORDS.from, cell: ({ price }) => (price === null ? "–" : momentText(price.effective_from)) },
    {
      header: WORDS.to,
      cell: ({ price }) =>
        price === null ? "–" : price.effective_to === null ? WORDS.open : momentText(price.effective_to),
    },
    {
      header: WORDS.state,
      cell: ({ meter, price }) => {
        if (price === null)
          return <span className="badge">{meter === "cached_input" ? WORDS.asInput : WORDS.nothing}</span>;
        const state = stateOf(price, now);
        return <span className={state === "now" ? "badge good" : "badge"}>{WORDS[state]}</span>;
      },
    },
    { header: WORDS.source, cell: ({ price }) => price?.source || "–" },
    { header: WORDS.by, cell: ({ price }) => price?.created_by ?? "–" },
  ];
}

/** A price without the zeros nobody wrote, but with cents. */
function trimmed(price: string): string {
  return price.replace(/(\.\d{2}\d*?)0+$/, "$1");
}
