import { expect, test } from "vitest";
import { eventsOf } from "./events";

function response(...pieces: string[]): Response {
  const encoder = new TextEncoder();
  return new Response(
    new ReadableStream({
      start(controller) {
        for (const piece of pieces) controller.enqueue(encoder.encode(piece));
        controller.close();
      },
    }),
  );
}

async function all(...pieces: string[]) {
  const found = [];
  for await (const event of eventsOf(response(...pieces))) found.push(event);
  return found;
}

test("events come whole however the network cuts them", async () => {
  const stream = 'event: delta\r\ndata: {"text":"a\u00e9"}\r\n\r\n: still here\n\nevent: done\ndata: {}\n\n';
  for (const size of [1, 2, 3, 7, 1000]) {
    const pieces = stream.match(new RegExp(`[^]{1,${size}}`, "g")) ?? [];
    expect(await all(...pieces)).toEqual([
      { event: "delta", data: '{"text":"a\u00e9"}' },
      { event: "done", data: "{}" },
    ]);
  }
});

test("what is not ended by an empty line is no event", async () => {
  expect(await all("event: delta\ndata: 1")).toEqual([]);
});

test("several data lines are one text", async () => {
  expect(await all("data: a\ndata: b\n\n")).toEqual([{ event: "message", data: "a\nb" }]);
});
