import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import type { Aged } from "../api/types";
import { sinceOf } from "./ageing";
import { standingOf } from "./parts";
import { placeNow } from "./places";
import { Since } from "./Since";

const ALTERED: Aged = {
  state: "altered",
  current_version: 3,
  current_start_char: 5,
  current_end_char: 30,
  current_page_start: 2,
  current_page_end: 2,
  changes: [
    { kind: "equal", text: "The fee is " },
    { kind: "removed", text: "30 " },
    { kind: "added", text: "35 " },
    { kind: "equal", text: "euros." },
  ],
};

function shown(aged: Aged): string {
  return renderToStaticMarkup(<Since citation={{ version: 1, ...aged }} />);
}

test("an altered passage stands in both wordings, with the words that differ marked", () => {
  const html = shown(ALTERED);
  expect(html).toContain("<del>30 </del>");
  expect(html).toContain("<ins>35 </ins>");
  expect(html).toContain("Now, in version 3, page 2");
});

test("a passage that moved says where it stands now, one that is gone that it does not", () => {
  expect(shown({ ...ALTERED, state: "moved", changes: [] })).toContain("unchanged in version 3, page 2");
  expect(shown({ state: "gone", current_version: 3 })).toContain("not in version 3 any more");
  expect(shown({ state: "gone", current_version: null })).toBe("");
  expect(shown({ state: "current", current_version: 1 })).toBe("");
});

test("an answer that has just come tells that a newer version came meanwhile, and nothing else", () => {
  expect(shown({ current_version: 2 })).toContain("newer version: version 2");
  expect(shown({})).toBe("");
});

test("what was altered, is gone or is not compared yet is never confirmed", () => {
  const sure = { verified: true, answers: 0.99, version: 1 };
  expect(standingOf({ ...sure, state: "altered", current_version: 2 }, true)).toBe("altered");
  expect(standingOf({ ...sure, state: "gone", current_version: 2 }, false)).toBe("absent");
  expect(standingOf({ ...sure, state: "gone", current_version: null }, false)).toBe("gone");
  expect(standingOf({ ...sure, state: null, current_version: 2 }, true)).toBe("unsettled");
  expect(standingOf({ ...sure, state: "moved", current_version: 2 }, true)).toBe("confirmed");
  expect(standingOf({ ...sure, state: "current", current_version: 1 }, false)).toBe("confirmed");
});

test("early answers, whose passages have no place, stay as they were", () => {
  expect(sinceOf({ version: 1, state: null, current_version: null })).toBe("same");
});

test("a passage that is elsewhere now has a place there", () => {
  const passage = {
    document_id: "doc_1",
    version: 1,
    filename: "a.txt",
    start_char: 0,
    end_char: 4,
    page_start: 1,
    page_end: 1,
    cited_text: "Fee.",
  };
  expect(placeNow({ ...passage, ...ALTERED })).toMatchObject({ version: 3, span: { start: 5, end: 30 }, page: 2 });
  expect(placeNow({ ...passage, state: "gone", current_version: 3 })).toBeNull();
  expect(
    placeNow({ ...passage, state: "current", current_version: 1, current_start_char: 0, current_end_char: 4 }),
  ).toBeNull();
  expect(placeNow(passage)).toBeNull();
});
