/** Waits until the server, which is starting, can answer. */
import { address, Problem } from "../api/http";
import type { Readiness } from "../api/types";
import { t } from "../strings";

const PAUSE_MS = 1_000;

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

/** Asks until the server waits for nothing any more, and tells what it waits for meanwhile. */
export async function untilReady(onWaiting: (what: string) => void, signal: AbortSignal): Promise<void> {
  for (;;) {
    const what = await lookedAt(signal);
    if (what === null) return;
    onWaiting(what);
    await pause(signal);
  }
}

/** One that cannot be reached, or whose proxy keeps its state to itself, tells nothing: what was refused is tried again
 * after a while. */
async function lookedAt(signal: AbortSignal): Promise<string | null> {
  const response = await fetch(address("readyz"), { signal });
  if (response.status !== 200 && response.status !== 503) {
    await pause(signal);
    return null;
  }
  return waitsFor((await response.json()) as Readiness);
}

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((done, stopped) => {
    const abort = () => {
      window.clearTimeout(timer);
      stopped(new DOMException("stopped", "AbortError"));
    };
    const timer = window.setTimeout(() => {
      signal.removeEventListener("abort", abort);
      done();
    }, PAUSE_MS);
    signal.addEventListener("abort", abort, { once: true });
  });
}
