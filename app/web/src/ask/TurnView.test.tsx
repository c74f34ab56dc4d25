import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { NoticeProvider } from "../ui/notices";
import { EVERYTHING } from "./scope";
import { TurnView } from "./TurnView";
import { applied, newTurn } from "./turn";

const WRITING = "it is being written";

function shown(standalone: string | null, quotes?: object, ended = "stop"): string {
  const done = {
    answered: true,
    reason: null,
    finish_reason: ended,
    model: "m",
    standalone_question: standalone,
    abstention: { stage: null },
    parts: [],
    timings_ms: { total: 5 },
  };
  const asked = newTurn("a", "And what injuries did he have?", EVERYTHING);
  const told = quotes === undefined ? asked : applied(asked, { event: "quotes", data: JSON.stringify(quotes) });
  const written = applied(told, { event: "delta", data: JSON.stringify({ text: "A broken leg." }) });
  const turn = standalone === WRITING ? written : applied(written, { event: "done", data: JSON.stringify(done) });
  return renderToStaticMarkup(
    <NoticeProvider>
      <TurnView
        conversation={null}
        turn={turn}
        last={false}
        feedback={undefined}
        onOpen={() => undefined}
        onAgain={null}
        onAsk={null}
        onEverywhere={null}
      />
    </NoticeProvider>,
  );
}

test("a rewritten follow-up shows what was searched for, another question does not", () => {
  expect(shown("And what injuries did the pilot have?")).toContain(
    "Searched for: “And what injuries did the pilot have?”",
  );
  expect(shown(null)).not.toContain("Searched for");
});

test("what documents say stands open below the words while they are written, and is folded then", () => {
  const part = { kind: "quote", start: 0, end: 17, quoted: { start: 2, end: 17 }, highlights: [], citations: [] };
  const quotes = { answer: "> His leg was cut.", answered: true, citations: [], parts: [part], answers: 0.9 };
  const [writing, done] = [shown(WRITING, quotes), shown(null, quotes)];
  expect(writing).toContain('<details class="ask-before" open="">');
  expect(writing).toContain("His leg was cut");
  expect(writing.indexOf("A broken leg.")).toBeLessThan(writing.indexOf("His leg was cut"));
  expect(done).toContain('<details class="ask-before">');
  expect(shown(null)).not.toContain("ask-before");
});

test("an answer that was cut, or that went round in a circle, says so", () => {
  expect(shown(null, undefined, "length")).toContain("longest length allowed");
  expect(shown(null, undefined, "repetition")).toContain("began to repeat itself");
  expect(shown(null)).not.toContain("ask-note");
});
