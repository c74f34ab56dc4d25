/** What `/readyz` says, in words. */
import type { Readiness } from "../api/types";
import { sizeWords } from "../documents/words";
import { t } from "../strings";
import { countText, momentText } from "../ui/numbers";

const WORDS = t.admin.health;

export interface Station {
  name: string;
  state: "good" | "warn" | "bad";
  lines: string[];
}

type Checks = Record<string, unknown>;

/** Every station with how it does, those that do not work first. */
export function stationsOf({ reasons, checks }: Readiness): Station[] {
  const found: Station[] = [];
  const named = reasons.map((reason) => {
    const [station = "", ...rest] = reason.split(": ");
    return { station, said: rest.join(": ") };
  });
  const add = (name: string, lines: string[], state: Station["state"] = "good") => {
    const stopped = named.some(({ station }) => station === name);
    const told = stopped ? [WORDS.stopped, ...lines] : lines;
    found.push({ name: WORDS.stations[name] ?? name, state: stopped ? "bad" : state, lines: told });
  };
  for (const { station, said } of named) {
    if (checks[station] !== undefined && station !== "models") continue; // said with its own numbers below
    found.push({ name: WORDS.stations[station] ?? station, ...reasonWords(station, said, checks) });
  }
  const engine = part(checks, "engine");
  if (engine !== null) {
    const restarts = number(engine, "restarts");
    const lines = [WORDS.engine(countText(number(engine, "running")), countText(number(engine, "waiting")))];
    if (restarts > 0) lines.push(WORDS.restarts(countText(restarts)));
    const cache = part(engine, "cache");
    if (cache !== null && number(cache, "limit_bytes") > 0) {
      lines.push(WORDS.cache(sizeWords(number(cache, "bytes")), sizeWords(number(cache, "limit_bytes"))));
      const back = number(cache, "given_back_bytes");
      if (back > 0) lines.push(WORDS.givenBack(sizeWords(back)));
    }
    const path = part(engine, "path");
    const slower = path !== null && Array.isArray(path.slower) ? path.slower.map(String) : [];
    if (path !== null) lines.push(pathWords(path));
    add("engine", [...lines, ...slower], slower.length > 0 ? "warn" : "good");
  }
  const index = part(checks, "index");
  if (index !== null) {
    const line = WORDS.index(countText(number(index, "vectors")), String(index.embedder ?? ""));
    const words = index.lexical !== false;
    add("index", words ? [line] : [line, WORDS.noWords], words ? "good" : "warn");
  }
  const waiting = WORDS.waiting(countText(number(checks, "documents_waiting")));
  if (part(checks, "ingestion") !== null) add("ingestion", [waiting]);
  const building = part(checks, "reembedding");
  if (building !== null) {
    const line = WORDS.reembedding(countText(number(building, "done")), countText(number(building, "total")));
    const stalled = building.stalled === true;
    add("reembedding", stalled ? [line, WORDS.stalled] : [line], stalled ? "bad" : "good");
  }
  const ledger = part(checks, "ledger");
  if (ledger !== null) found.push(ledgerStation(ledger));
  return found.sort((one, other) => ORDER[one.state] - ORDER[other.state]);
}

/** What computes the model's steps: the device, and on a GPU what it is served from. */
function pathWords(path: Checks): string {
  const device = WORDS.device(String(path.device ?? ""), String(path.dtype ?? ""));
  if (path.device === "cpu") return device;
  const layout = path.layout === "pages" ? WORDS.pages : WORDS.slabs;
  return [device, layout, path.graphs === true ? WORDS.graphs : WORDS.noGraphs].join(", ");
}

const ORDER = { bad: 0, warn: 1, good: 2 } as const;

function reasonWords(station: string, said: string, checks: Checks): Pick<Station, "state" | "lines"> {
  if (station === "models" && said === "loading") {
    const step = String(part(checks, "models")?.loading ?? "");
    return { state: "warn", lines: [WORDS.modelsLoading(step)] };
  }
  if (station === "models") {
    return { state: "bad", lines: [said === "failed" ? WORDS.modelsFailed : WORDS.modelsMissing] };
  }
  if (station === "server") return { state: "warn", lines: [WORDS.stopping] };
  if (station === "database") return { state: "bad", lines: [WORDS.databaseDown(said)] };
  return { state: "bad", lines: [said] };
}

function ledgerStation(ledger: Checks): Station {
  const name = WORDS.stations.ledger ?? "";
  if (ledger.ok === true) {
    return { name, state: "good", lines: [WORDS.agrees(momentText(number(ledger, "as_of")))] };
  }
  if (ledger.ok !== false) return { name, state: "good", lines: [WORDS.notCompared] };
  const names = Array.isArray(ledger.mismatches) ? ledger.mismatches.join(", ") : "";
  return { name, state: "bad", lines: [WORDS.differs(names.replaceAll("_", " "))] };
}

function part(checks: Checks, name: string): Checks | null {
  const value = checks[name];
  return typeof value === "object" && value !== null ? (value as Checks) : null;
}

function number(checks: Checks, name: string): number {
  const value = checks[name];
  return typeof value === "number" ? value : 0;
}
