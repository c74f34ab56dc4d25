/** A budget as a form has it, and as the API takes it. */
import type { BudgetTerms } from "../api/types";
import { t } from "../strings";
import { Wrong } from "./fields";

export interface TermsForm {
  unit: BudgetTerms["unit"];
  limit: string;
  period: BudgetTerms["period"];
  /** Empty is the server's reporting zone. */
  tz: string;
  enforcement: BudgetTerms["enforcement"];
  thresholds: string;
  webhook: string;
}

export const NEW_TERMS: TermsForm = {
  unit: "tokens",
  limit: "",
  period: "month",
  tz: "",
  enforcement: "hard",
  thresholds: "80, 100",
  webhook: "",
};

/** What a form says. Throws a `Wrong` for what cannot be read. */
export function termsOf(form: TermsForm): BudgetTerms {
  return {
    unit: form.unit,
    limit: limitOf(form.limit, form.unit),
    period: form.period,
    tz: form.tz === "" ? null : form.tz,
    enforcement: form.enforcement,
    thresholds: thresholdsOf(form.thresholds),
    webhook_url: form.webhook.trim(),
  };
}

/** A limit: tokens are a number, money a decimal string, which is never made a number. */
export function limitOf(text: string, unit: BudgetTerms["unit"]): number | string {
  const written = text.trim();
  if (unit === "tokens") {
    // A browser's own grouping may be in what was copied.
    const digits = written.replaceAll(/[\s\u00a0\u202f]/g, "");
    if (!/^\d{1,15}$/.test(digits)) throw new Wrong("limit", t.admin.budgets.wrongTokens);
    return Number(digits);
  }
  if (!/^\d+(\.\d{1,12})?$/.test(written)) throw new Wrong("limit", t.admin.budgets.wrongCost);
  return written;
}

/** Percentages, with commas between. */
export function thresholdsOf(text: string): number[] {
  const parts = text
    .split(/[,;\s%]+/)
    .map((part) => part.trim())
    .filter((part) => part !== "");
  if (parts.some((part) => !/^\d{1,4}$/.test(part) || Number(part) < 1 || Number(part) > 1000)) {
    throw new Wrong("thresholds", t.admin.budgets.wrongThresholds);
  }
  return parts.map(Number);
}
