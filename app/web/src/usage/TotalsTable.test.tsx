import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { t } from "../strings";
import type { AllReports } from "./reports";
import { TotalsTable } from "./TotalsTable";

const BUCKET = { object: "bucket", start_time: 0, end_time: 86_400 } as const;
const COST = (model: string, value: string) => ({ model, amount: { value, currency: "usd" } });

/** One bucket: a model that answers, and one that reads passages to find and check what it said. */
const REPORTS = {
  asked: { split: "model" },
  completions: [
    {
      ...BUCKET,
      results: [
        {
          model: "writer",
          input_uncached_tokens: 70,
          input_cached_tokens: 20,
          output_tokens: 10,
          num_model_requests: 3,
        },
      ],
    },
  ],
  embeddings: [],
  rerank: [],
  judge: [{ ...BUCKET, results: [{ model: "reader", input_tokens: 410, num_model_requests: 2 }] }],
  costs: [{ ...BUCKET, results: [COST("writer", "0.5"), COST("reader", "0.25")] }],
} as unknown as AllReports;

test("what only reads has its calls, its tokens and its cost", () => {
  const html = renderToStaticMarkup(<TotalsTable reports={REPORTS} nameOf={(group) => group} />);
  const [, reader = ""] = /<tr><th[^>]*>reader<\/th>(.*?)<\/tr>/.exec(html) ?? [];
  const cells = [...reader.matchAll(/<td[^>]*>(?:<data[^>]*>)?([^<]*)/g)].map(([, text]) => text);
  expect(cells.slice(0, -1)).toEqual(["2", "0", "0", "0", "410", "410"]);
  expect(cells.at(-1)).toContain("0.25");
  expect(html).toContain(t.usage.kinds.judge);
  expect(html).not.toContain(t.usage.kinds.rerank);
});
