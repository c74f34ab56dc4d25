import { expect, test } from "vitest";
import { pageQuery, reportQuery } from "./query";

const asked = { span: { start: 100, end: 200, width: "1d" }, zone: "Europe/Berlin", split: "user" } as const;

test("a file has the chart's query, without its pages", () => {
  const { limit, page, ...chart } = pageQuery("costs", asked, "page_1");
  expect(limit).toBe(31);
  expect(page).toBe("page_1");
  expect(reportQuery("costs", asked)).toEqual(chart);
  expect(chart).toEqual({
    start_time: 100,
    end_time: 200,
    bucket_width: "1d",
    tz: "Europe/Berlin",
    group_by: "user_id",
  });
});

test("kinds of tokens are not grouped, and only costs are by document", () => {
  expect(reportQuery("completions", { ...asked, split: "kind" }).group_by).toBeUndefined();
  expect(reportQuery("completions", { ...asked, split: "document" }).group_by).toBeUndefined();
  expect(reportQuery("costs", { ...asked, split: "document" }).group_by).toBe("document_id");
  expect(reportQuery("completions", { ...asked, split: "collection" }).group_by).toBe("project_id");
});
