import { useMemo } from "react";
import { t } from "../strings";
import { everyZone } from "../ui/zones";
import { Choice, optionsOf } from "./Choice";
import { type ErrorOf, Field } from "./Form";
import type { TermsForm } from "./terms";

const WORDS = t.admin.budgets;

/** What the API calls these fields, also inside of a key. */
export const TERMS_FIELDS = ["limit", "thresholds", "webhook_url", "tz", "budget.limit", "budget"] as const;

interface TermsFieldsProps {
  terms: TermsForm;
  onChange: (terms: TermsForm) => void;
  errorOf: ErrorOf;
  /** Of a budget that is there, what it counts and for how long stays. */
  fixed?: boolean;
}

/** What a budget says: how much, for how long, and what happens then. */
export function TermsFields({ terms, onChange, errorOf, fixed = false }: TermsFieldsProps) {
  const zones = useMemo(everyZone, []);
  const set = (change: Partial<TermsForm>) => onChange({ ...terms, ...change });
  const calendar = terms.period === "day" || terms.period === "month";
  return (
    <>
      {!fixed && (
        <div className="pair">
          <Field label={WORDS.unit}>
            {(input) => (
              <Choice
                input={input}
                value={terms.unit}
                options={optionsOf(WORDS.units)}
                onChange={(unit) => set({ unit })}
              />
            )}
          </Field>
          <Field label={WORDS.period}>
            {(input) => (
              <Choice
                input={input}
                value={terms.period}
                options={optionsOf(WORDS.periods)}
                onChange={(period) => set({ period })}
              />
            )}
          </Field>
        </div>
      )}
      <Field
        label={WORDS.limit}
        hint={terms.unit === "tokens" ? WORDS.limitTokens : WORDS.limitCost}
        error={errorOf("limit") ?? errorOf("budget.limit") ?? errorOf("budget")}
      >
        {(input) => (
          <input
            {...input}
            required
            inputMode={terms.unit === "tokens" ? "numeric" : "decimal"}
            value={terms.limit}
            onChange={(event) => set({ limit: event.target.value })}
          />
        )}
      </Field>
      {!fixed && calendar && (
        <Field label={WORDS.zone} error={errorOf("tz")}>
          {(input) => (
            <select {...input} value={terms.tz} onChange={(event) => set({ tz: event.target.value })}>
              <option value="">{WORDS.serverZone}</option>
              {zones.map((zone) => (
                <option key={zone}>{zone}</option>
              ))}
            </select>
          )}
        </Field>
      )}
      <Field label={WORDS.enforcement}>
        {(input) => (
          <Choice
            input={input}
            value={terms.enforcement}
            options={optionsOf(WORDS.enforcements)}
            onChange={(enforcement) => set({ enforcement })}
          />
        )}
      </Field>
      <Field label={WORDS.thresholds} hint={WORDS.thresholdsHint} error={errorOf("thresholds")}>
        {(input) => (
          <input {...input} value={terms.thresholds} onChange={(event) => set({ thresholds: event.target.value })} />
        )}
      </Field>
      <Field label={WORDS.webhook} hint={WORDS.webhookHint} error={errorOf("webhook_url")}>
        {(input) => (
          <input
            {...input}
            type="url"
            maxLength={2048}
            value={terms.webhook}
            onChange={(event) => set({ webhook: event.target.value })}
          />
        )}
      </Field>
    </>
  );
}
