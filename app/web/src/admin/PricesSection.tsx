import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Price } from "../api/types";
import { useSession } from "../session/session";
import { t } from "../strings";
import { useNotices } from "../ui/notices";
import { momentText } from "../ui/numbers";
import { useList } from "./lists";
import { PriceForm } from "./PriceForm";
import { RerateDialog } from "./RerateDialog";
import { Section } from "./Section";
import { type Column, List } from "./Table";

const WORDS = t.admin.prices;

/** What models cost, from when on; entered by the operator, and read by every administrator. */
export function PricesSection() {
  const session = useSession();
  const queries = useQueryClient();
  const say = useNotices();
  const [open, setOpen] = useState<"create" | "rerate" | null>(null);
  const [all, setAll] = useState(true);
  const found = useList<Price>(["prices", "list"], "v1/admin/prices");
  const now = Date.now() / 1000;
  const items = found.items.filter((price) => all || stateOf(price, now) === "now");
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
            <button type="button" className="primary" onClick={() => setOpen("create")}>
              {WORDS.create}
            </button>
          </>
        )
      }
    >
      <label className="check">
        <input type="checkbox" checked={!all} onChange={(event) => setAll(!event.target.checked)} />
        {WORDS.onlyNow}
      </label>
      <List
        label={t.admin.sections.prices}
        found={found}
        items={items}
        none={WORDS.none}
        keyOf={(price) => price.id}
        columns={columnsOf(now)}
      />
      {open === "create" && (
        <PriceForm
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

function columnsOf(now: number): Column<Price>[] {
  return [
    { header: WORDS.model, cell: (price) => price.model },
    { header: WORDS.meter, cell: (price) => WORDS.meters[price.meter] ?? price.meter },
    {
      header: WORDS.price,
      number: true,
      cell: (price) => `${trimmed(price.price_per_million)} ${price.currency.toUpperCase()}`,
    },
    { header: WORDS.from, cell: (price) => momentText(price.effective_from) },
    { header: WORDS.to, cell: (price) => (price.effective_to === null ? WORDS.open : momentText(price.effective_to)) },
    {
      header: WORDS.state,
      cell: (price) => {
        const state = stateOf(price, now);
        return <span className={state === "now" ? "badge good" : "badge"}>{WORDS[state]}</span>;
      },
    },
    { header: WORDS.source, cell: (price) => price.source || "–" },
    { header: WORDS.by, cell: (price) => price.created_by },
  ];
}

function stateOf(price: Price, now: number): "now" | "past" | "coming" {
  if (price.effective_from > now) return "coming";
  return price.effective_to === null || price.effective_to > now ? "now" : "past";
}

/** A price without the zeros nobody wrote, but with cents. */
function trimmed(price: string): string {
  return price.replace(/(\.\d{2}\d*?)0+$/, "$1");
}
