/** Waits until the server, which is starting, can answer. */
import { address, Problem, retryAfterOf } from "../api/http";
import type { Readiness } from "../api/types";
import { t } from "../strings";

/** How long until the next look, where the server does not say. */
const LOOK_S = 1;
/** No pause is longer, whatever the server says. */
const LONGEST_S = 30;
const GROWTH = 1.5;
/** Tries without the server's state: a quarter of an hour and more. */
const MOST = 40;

/** What the server waits for, in words; null where it is ready, or will not become so by itself. */
export function waitsFor({ ready, reasons, checks }: Readiness): string | null {
  const words = t.ask.turn;
  if (ready || !reasons.includes("models: loading")) return null;
  const step = (checks as Record<string, unknown>).models as { loading?: string; done?: number; total?: number };
  if (step?.loading === undefined) return words.waitingForModels;
  return words.waitingStep(step.loading, step.done ?? 0, step.total ?? 0);
}

/** Whether a refusal says that the server is not ready (yet). */
export function isNotReady(error: unknown): boolean {
  return error instanceof Problem && error.status === 503 && error.slug.split(":").at(-1) === "not-ready";
}

/** What a look at the server's state has found. */
export type Found =
  | { state: "ready" }
  /** `seconds`: when to look again, as the server says; null where it does not say. */
  | { state: "loading"; what: string; seconds: number | null }
  /** It will not become ready by itself. */
  | { state: "broken" }
  /** A proxy keeps its state to itself. */
  | { state: "unknown" }
  | { state: "unreachable" };

interface Waiting {
  /** Is told what is waited for, in words. */
  onWaiting: (what: string) => void;
  signal: AbortSignal;
  look?: (signal: AbortSignal) => Promise<Found>;
  pause?: (seconds: number, signal: AbortSignal) => Promise<void>;
}

/** Makes an attempt, and makes it again when the server, which refused it while it was starting, is ready.
 *
 * Only what was refused as not ready is repeated: the server has done nothing for it. Without the server's state it is
 * repeated after pauses that grow, from the server's own `Retry-After`, to `LONGEST_S`; at most `MOST` times. */
export async function whenReady<Result>(
  attempt: () => Promise<Result>,
  { onWaiting, signal, look = lookedAt, pause = paused }: Waiting,
): Promise<Result> {
  for (let blind = 0; ; ) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof Problem) || !isNotReady(error)) throw error;
      let found = await look(signal);
      while (found.state === "loading" || found.state === "unreachable") {
        if (found.state === "loading") {
          onWaiting(found.what);
          await pause(Math.min(LONGEST_S, found.seconds ?? LOOK_S), signal);
        } else {
          if (++blind > MOST) throw error;
          onWaiting(t.ask.turn.waitingForModels);
          await pause(pauseS(error, blind), signal);
        }
        found = await look(signal);
      }
      if (found.state === "broken" || ++blind > MOST) throw error;
      if (found.state === "ready" && blind === 1) continue; // it has become ready since
      onWaiting(t.ask.turn.waitingForModels);
      await pause(pauseS(error, blind), signal);
    }
  }
}

function pauseS({ retryAfter }: Problem, times: number): number {
  return Math.min(LONGEST_S, (retryAfter ?? LOOK_S) * GROWTH ** (times - 1));
}

async function lookedAt(signal: AbortSignal): Promise<Found> {
  let response: Response;
  try {
    response = await fetch(address("readyz"), { signal });
  } catch (error) {
    if (signal.aborted) throw error;
    return { state: "unreachable" };
  }
  if (response.status !== 200 && response.status !== 503) return { state: "unknown" };
  const said = await readiness(response);
  if (said === null) return { state: "unknown" };
  if (said.ready) return { state: "ready" };
  const what = waitsFor(said);
  return what === null ? { state: "broken" } : { state: "loading", what, seconds: retryAfterOf(response) };
}

/** Null where it is a proxy's own page. */
async function readiness(response: Response): Promise<Readiness | null> {
  try {
    const said = (await response.json()) as Partial<Readiness> | null;
    return typeof said?.ready === "boolean" && Array.isArray(said.reasons) ? (said as Readiness) : null;
  } catch {
    return null;
  }
}

function paused(seconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((done, stopped) => {
    const abort = () => {
      window.clearTimeout(timer);
      stopped(new DOMException("stopped", "AbortError"));
    };
    const timer = window.setTimeout(() => {
      signal.removeEventListener("abort", abort);
      done();
    }, seconds * 1000);
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
  });
}
