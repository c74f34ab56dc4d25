import { useQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import { request } from "../api/http";
import type { Model, Price } from "../api/types";
import { t } from "../strings";
import { Choice } from "./Choice";
import { Field, FormDialog } from "./Form";
import { Wrong } from "./fields";

const WORDS = t.admin.prices;
const FIELDS = ["model", "meter", "price_per_million", "effective_from", "source"] as const;
const METERS = ["input", "cached_input", "output", "embedding"] as const;
type Meter = (typeof METERS)[number];

/** A price from a moment on. */
export function PriceForm({ onDone, onClose }: { onDone: () => Promise<void>; onClose: () => void }) {
  const list = useId();
  const models = useQuery({
    queryKey: ["models"],
    queryFn: ({ signal }) => request<{ data: Model[] }>("v1/models", { signal }),
  });
  const [model, setModel] = useState("");
  const [meter, setMeter] = useState<Meter>("input");
  const [price, setPrice] = useState("");
  const [from, setFrom] = useState("");
  const [source, setSource] = useState("");

  async function submit() {
    if (!/^\d+(\.\d{1,6})?$/.test(price.trim())) throw new Wrong("price_per_million", WORDS.wrongPrice);
    const body = {
      model: model.trim(),
      meter,
      price_per_million: price.trim(),
      effective_from: from === "" ? null : new Date(from).getTime() / 1000,
      source: source.trim(),
    };
    await request<Price>("v1/admin/prices", { method: "POST", body });
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
            {behind(models.data?.data ?? []).map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
          <Field label={WORDS.meter} error={errorOf("meter")}>
            {(input) => (
              <Choice
                input={input}
                value={meter}
                options={METERS.map((value) => ({ value, label: WORDS.meters[value] ?? value }))}
                onChange={setMeter}
              />
            )}
          </Field>
          <Field label={WORDS.price} hint={WORDS.priceHint} error={errorOf("price_per_million")}>
            {(input) => (
              <input
                {...input}
                required
                inputMode="decimal"
                maxLength={32}
                value={price}
                onChange={(event) => setPrice(event.target.value)}
              />
            )}
          </Field>
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

/** The names reports use: those of what is behind the models one asks. */
function behind(models: readonly Model[]): string[] {
  return [
    ...new Set(models.flatMap(({ generator, embedder }) => (generator === null ? [embedder] : [generator, embedder]))),
  ];
}
