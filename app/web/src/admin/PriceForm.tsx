import { useQuery } from "@tanstack/react-query";
import { useId, useRef, useState } from "react";
import { request } from "../api/http";
import type { Model, Price } from "../api/types";
import { t } from "../strings";
import { countText } from "../ui/numbers";
import { Field, FormDialog } from "./Form";
import { Wrong } from "./fields";
import { DAYS, proposedModels, recentUse } from "./modelUse";
import { METERS, type Meter } from "./priceTables";

const WORDS = t.admin.prices;
const FIELDS = ["model", ...METERS, "effective_from", "source"] as const;
const NOTHING: Record<Meter, string> = { input: "", cached_input: "", output: "", embedding: "" };

interface PriceFormProps {
  /** The one that was chosen, "" where none was. */
  model: string;
  onDone: () => Promise<void>;
  onClose: () => void;
}

/** Prices of one model from a moment on, as price lists have them: per million tokens in and out. */
export function PriceForm({ model: chosen, onDone, onClose }: PriceFormProps) {
  const list = useId();
  const models = useQuery({
    queryKey: ["models"],
    queryFn: ({ signal }) => request<{ data: Model[] }>("v1/models", { signal }),
  });
  const used = useQuery({ queryKey: ["usage", "models"], queryFn: ({ signal }) => recentUse(signal) });
  // Together, so that none that made calls is listed as one that made none.
  const proposed = used.isPending || models.isPending ? [] : proposedModels(used.data ?? [], models.data?.data ?? []);
  const [model, setModel] = useState(chosen);
  const [prices, setPrices] = useState(NOTHING);
  const [from, setFrom] = useState("");
  const [source, setSource] = useState("");
  // What an earlier attempt has entered, of which a later price failed: no price is entered twice.
  const entered = useRef(new Set<string>());

  async function submit() {
    const given = METERS.filter((meter) => prices[meter].trim() !== "");
    const [first] = given;
    if (first === undefined) throw new Wrong("input", WORDS.noPrice);
    for (const meter of given) {
      if (!/^\d+(\.\d{1,6})?$/.test(prices[meter].trim())) throw new Wrong(meter, WORDS.wrongPrice);
    }
    for (const meter of given) {
      const body = {
        model: model.trim(),
        meter,
        price_per_million: prices[meter].trim(),
        effective_from: from === "" ? null : new Date(from).getTime() / 1000,
        source: source.trim(),
      };
      const key = JSON.stringify(body);
      if (entered.current.has(key)) continue;
      await request<Price>("v1/admin/prices", { method: "POST", body });
      entered.current.add(key);
    }
    await onDone();
  }

  return (
    <FormDialog title={WORDS.create} submit={WORDS.create} fields={FIELDS} onSubmit={submit} onClose={onClose}>
      {(errorOf) => (
        <>
          <Field label={WORDS.model} hint={WORDS.modelHint} error={errorOf("model")}>
            {(input) => (
              <input
                {...input}
                required
                maxLength={200}
                list={list}
                value={model}
                onChange={(event) => setModel(event.target.value)}
              />
            )}
          </Field>
          <datalist id={list}>
            {proposed.map(({ model, tokens }) => (
              <option
                key={model}
                value={model}
                label={
                  tokens === null
                    ? WORDS.notCalled(model, DAYS)
                    : WORDS.tokensUsed(model, tokens, countText(tokens), DAYS)
                }
              />
            ))}
          </datalist>
          <p className="quiet small">{WORDS.priceHint}</p>
          <div className="pair">
            {METERS.map((meter) => (
              <Field
                key={meter}
                label={WORDS.perMillion[meter]}
                hint={WORDS.perMillionHints[meter]}
                error={errorOf(meter)}
              >
                {(input) => (
                  <input
                    {...input}
                    inputMode="decimal"
                    maxLength={32}
                    value={prices[meter]}
                    onChange={(event) => setPrices({ ...prices, [meter]: event.target.value })}
                  />
                )}
              </Field>
            ))}
          </div>
          <Field label={WORDS.from} hint={WORDS.fromHint} error={errorOf("effective_from")}>
            {(input) => (
              <input {...input} type="datetime-local" value={from} onChange={(event) => setFrom(event.target.value)} />
            )}
          </Field>
          <Field label={WORDS.source} hint={t.admin.optional} error={errorOf("source")}>
            {(input) => (
              <input {...input} maxLength={500} value={source} onChange={(event) => setSource(event.target.value)} />
            )}
          </Field>
        </>
      )}
    </FormDialog>
  );
}
