import { expect, test } from "vitest";
import { pageWords } from "./places";

test("a passage without pages is named by its section", () => {
  const nowhere = { page_start: null, page_end: null };
  expect(pageWords({ ...nowhere, section: "3 Leave" })).toBe("section 3, Leave");
  expect(pageWords({ ...nowhere, section: "2.1. Sick leave" })).toBe("section 2.1, Sick leave");
  expect(pageWords({ ...nowhere, section: "Leave" })).toBe("section “Leave”");
  expect(pageWords({ ...nowhere, section: "2026" })).toBe("section “2026”");
  expect(pageWords({ ...nowhere, section: "é".repeat(90) })).toBe(`section “${"é".repeat(80)}…”`);
  expect(pageWords({ ...nowhere, section: null })).toBe("");
  expect(pageWords(nowhere)).toBe("");
  expect(pageWords({ page_start: 4, page_end: 4, section: "3 Leave" })).toBe("page 4");
  const sheet = { page_start: 1, page_end: 1, section: "Totals", sheet: "Sales" };
  expect(pageWords(sheet)).toBe("sheet “Sales”");
  expect(pageWords({ ...sheet, cell: "A27:J27" })).toBe("sheet “Sales”, A27:J27");
});
