import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { t } from "../strings";
import type { AllReports } from "./reports";
import { TotalsTable } from "./TotalsTable";

/** One bucket: a model that answers, and what others cost that no report of tokens counts. */
function reports(...others: [model: string, cost: string][]): AllReports {
  const bucket = { object: "bucket", start_time: 0, end_time: 86_400 } as const;
  const answered = { model: "writer", input_uncached_tokens: 70, input_cached_tokens: 20, output_tokens: 10 };
  const costs = [["writer", "0.5"], ...others].map(([model, value]) => ({ model, amount: { value, currency: "usd" } }));
  return {
    asked: { split: "model" },
    completions: [{ ...bucket, results: [{ ...answered, num_model_requests: 3 }] }],
    embeddings: [],
    rerank: [],
    costs: [{ ...bucket, results: costs }],
  } as unknown as AllReports;
}

function shown(found: AllReports): string {
  return renderToStaticMarkup(<TotalsTable reports={found} nameOf={(group) => group} />);
}

test("a cost without a call is no call of nothing", () => {
  const html = shown(reports(["reader", "0.25"]));
  const [, reader = ""] = /<tr><th[^>]*>reader<\/th>(.*?)<\/tr>/.exec(html) ?? [];
  const cells = [...reader.matchAll(/<td[^>]*>(?:<data[^>]*>)?([^<]*)/g)].map(([, text]) => text);
  expect(cells.slice(0, -1)).toEqual(["–", "–", "–", "–", "–"]);
  expect(cells.at(-1)).toContain("0.25");
  expect(html).toContain(t.usage.table.uncounted);
});

test("nothing is explained where everything is counted", () => {
  expect(shown(reports())).not.toContain(t.usage.table.uncounted);
  expect(shown(reports(["reader", "0"]))).not.toContain(t.usage.table.uncounted);
});
