import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { EVERYTHING } from "./scope";
import { TurnView } from "./TurnView";
import { applied, newTurn } from "./turn";

function shown(standalone: string | null): string {
  const done = {
    answered: true,
    reason: null,
    finish_reason: "stop",
    model: "m",
    standalone_question: standalone,
    abstention: { stage: null },
    parts: [],
    timings_ms: { total: 5 },
  };
  const asked = newTurn("a", "And what injuries did he have?", EVERYTHING);
  const turn = applied(asked, { event: "done", data: JSON.stringify(done) });
  return renderToStaticMarkup(
    <TurnView
      conversation={null}
      turn={turn}
      last={false}
      feedback={undefined}
      onOpen={() => undefined}
      onAgain={null}
      onAsk={null}
      onEverywhere={null}
    />,
  );
}

test("a rewritten follow-up shows what was searched for, another question does not", () => {
  expect(shown("And what injuries did the pilot have?")).toContain(
    "Searched for: “And what injuries did the pilot have?”",
  );
  expect(shown(null)).not.toContain("Searched for");
});
