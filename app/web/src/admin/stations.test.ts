import { expect, test } from "vitest";
import { sizeWords } from "../documents/words";
import { t } from "../strings";
import { stationsOf } from "./stations";

const WORDS = t.admin.health;
const engine = { alive: true, running: 1, waiting: 0, restarts: 0 };
const index = { generation: 1, vectors: 5, lexical: true, embedder: "m" };

test("a server that works has only good stations", () => {
  const found = stationsOf({
    ready: true,
    reasons: [],
    checks: {
      documents_waiting: 2,
      engine,
      index,
      ingestion: { alive: true },
      ledger: { ok: true, as_of: 1, mismatches: [] },
    },
  });
  expect(found.map(({ state }) => state)).toEqual(["good", "good", "good", "good"]);
  expect(found[2]?.lines).toEqual([WORDS.waiting("2")]);
});

test("the engine says what its prompt cache takes and what it gave back", () => {
  const cache = { bytes: 3 * 2 ** 20, limit_bytes: 2 ** 30, given_back_bytes: 0 };
  const lines = (given_back_bytes: number) =>
    stationsOf({
      ready: true,
      reasons: [],
      checks: { engine: { ...engine, cache: { ...cache, given_back_bytes } } },
    })[0]?.lines;
  expect(lines(0)?.at(-1)).toBe(WORDS.cache(sizeWords(cache.bytes), sizeWords(cache.limit_bytes)));
  expect(lines(5 * 2 ** 20)?.at(-1)).toBe(WORDS.givenBack(sizeWords(5 * 2 ** 20)));
});

test("the engine says what computes, and warns where a faster path does not serve", () => {
  const station = (path: Record<string, unknown>) =>
    stationsOf({ ready: true, reasons: [], checks: { engine: { ...engine, path } } })[0];
  const cpu = station({ device: "cpu", dtype: "float32", layout: "slabs", graphs: false, slower: [] });
  expect(cpu?.lines.at(-1)).toBe(WORDS.device("cpu", "float32"));
  expect(cpu?.state).toBe("good");
  const gpu = { device: "cuda:0", dtype: "bfloat16", layout: "pages", graphs: true, slower: [] };
  expect(station(gpu)?.lines.at(-1)).toBe(`${WORDS.device("cuda:0", "bfloat16")}, ${WORDS.pages}, ${WORDS.graphs}`);
  const slow = station({ ...gpu, layout: "slabs", graphs: false, slower: ["No compiler."] });
  expect(slow?.lines.slice(-2)).toEqual([
    `${WORDS.device("cuda:0", "bfloat16")}, ${WORDS.slabs}, ${WORDS.noGraphs}`,
    "No compiler.",
  ]);
  expect(slow?.state).toBe("warn");
});

test("what has stopped comes first, with its reason once", () => {
  const found = stationsOf({
    ready: false,
    reasons: ["ingestion: stopped"],
    checks: { documents_waiting: 0, engine, index, ingestion: { alive: false }, ledger: { ok: null } },
  });
  expect(found[0]).toEqual({
    name: WORDS.stations.ingestion,
    state: "bad",
    lines: [WORDS.stopped, WORDS.waiting("0")],
  });
  expect(found.filter(({ name }) => name === WORDS.stations.ingestion)).toHaveLength(1);
});

test("models that are being loaded say at what", () => {
  const found = stationsOf({
    ready: false,
    reasons: ["models: loading"],
    checks: { documents_waiting: 0, models: { loading: "generator", done: 1, total: 3 } },
  });
  expect(found).toEqual([{ name: WORDS.stations.models, state: "warn", lines: [WORDS.modelsLoading("generator")] }]);
});

test("books that differ are bad news, and reasons nobody foresaw are shown", () => {
  const found = stationsOf({
    ready: false,
    reasons: ["cellar: flooded"],
    checks: { ledger: { ok: false, as_of: 1, mismatches: ["engine_decode"] } },
  });
  expect(found).toEqual([
    { name: "cellar", state: "bad", lines: ["flooded"] },
    { name: WORDS.stations.ledger, state: "bad", lines: [WORDS.differs("engine decode")] },
  ]);
});
