/** Questions under way and what came of them, by conversation. It outlives the screens, so that an answer goes on while
 * somebody looks at a document, and ends with the session. */
import type { QueryClient } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import { eventsOf } from "../api/events";
import { Problem, request, send } from "../api/http";
import type { AskRequest, Conversation, Session } from "../api/types";
import { conversationsChanged } from "./acrossTabs";
import { whenReady } from "./readiness";
import { EVERYTHING, type Scope, scopeBody } from "./scope";
import { applied, isRunning, newTurn, type Turn } from "./turn";

/** What is asked next: kept while one looks elsewhere. */
export interface Draft {
  text: string;
  scope: Scope;
  length: Length;
}

/** How much of what the documents say is told. */
export type Length = NonNullable<AskRequest["length"]>;

interface Asked {
  question: string;
  scope: Scope;
  length: Length;
  alone?: boolean;
}

/** The thread of a conversation that does not exist yet. */
const NEW = "";
const NO_TURNS: readonly Turn[] = [];
const NO_DRAFT: Draft = { text: "", scope: EVERYTHING, length: "normal" };
const STOPPING_MS = 4000;

export class Runs {
  private readonly threads = new Map<string, readonly Turn[]>();
  private readonly drafts = new Map<string, Draft>();
  private readonly aborts = new Map<string, AbortController>();
  private readonly listeners = new Set<() => void>();
  private frame: number | null = null;
  private keys = 0;

  constructor(private readonly queries: QueryClient) {}

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  turns(conversation: string | null): readonly Turn[] {
    return this.threads.get(conversation ?? NEW) ?? NO_TURNS;
  }

  draft(conversation: string | null): Draft {
    return this.drafts.get(conversation ?? NEW) ?? NO_DRAFT;
  }

  setDraft(conversation: string | null, draft: Draft): void {
    this.drafts.set(conversation ?? NEW, draft);
    // At once: what is typed must be there before the next letter is.
    this.tellNow();
  }

  /** What was asked in it is no longer known here. */
  forget(conversation: string | null): void {
    for (const turn of this.turns(conversation)) this.aborts.get(turn.key)?.abort();
    this.threads.delete(conversation ?? NEW);
    this.drafts.delete(conversation ?? NEW);
    this.tell();
  }

  /** Ask, in a new conversation where `conversation` is null; `onBegun` is told its id once there is one. A turn that
   * came to nothing is replaced by its repetition, `instead`. */
  async ask(
    asked: Asked & { conversation: string | null; instead?: string },
    onBegun: (id: string) => void = () => {},
  ): Promise<void> {
    const turn = newTurn(`turn-${this.keys++}`, asked.question, asked.scope, asked.alone);
    const abort = new AbortController();
    this.aborts.set(turn.key, abort);
    this.setThread(asked.conversation, [
      ...this.turns(asked.conversation).filter((one) => one.key !== asked.instead),
      turn,
    ]);
    let conversation = asked.conversation;
    try {
      if (conversation === null) {
        const begun = await request<Conversation>("v1/conversations", {
          method: "POST",
          body: {},
          signal: abort.signal,
        });
        conversation = begun.id;
        this.move(conversation);
        onBegun(conversation);
      }
      const id = conversation;
      await whenReady(() => this.stream(turn.key, id, asked, abort.signal), {
        onWaiting: (what) => this.change(turn.key, (one) => ({ ...one, state: "waiting", waitingFor: what })),
        signal: abort.signal,
      });
    } catch (error) {
      const stopped = abort.signal.aborted;
      this.change(turn.key, (one) => ({
        ...one,
        state: stopped ? "stopped" : "failed",
        problem: stopped ? null : reached(error),
      }));
    } finally {
      this.aborts.delete(turn.key);
      this.tellNow();
      void this.readAgain();
      void this.queries.invalidateQueries({ queryKey: ["usage"] });
    }
  }

  /** What is on its way from the server may be from before an answer was kept. */
  private async readAgain(): Promise<void> {
    await this.queries.cancelQueries({ queryKey: ["conversations"] });
    await conversationsChanged(this.queries);
  }

  /** Stop an answer. The server ends it with the footnotes and the bill of what was written; one that does not, or that
   * has not begun to answer, is left. */
  async stop(key: string): Promise<void> {
    const abort = this.aborts.get(key);
    const turn = this.find(key);
    if (abort === undefined || turn === undefined) return;
    this.change(key, (one) => ({ ...one, stopping: true }));
    this.tellNow();
    if (turn.requestId === null) {
      abort.abort();
      return;
    }
    window.setTimeout(() => abort.abort(), STOPPING_MS);
    try {
      await send(`v1/requests/${encodeURIComponent(turn.requestId)}/cancel`, { method: "POST" });
    } catch (error) {
      // 404: it has ended by itself, and its last events are on their way.
      if (!(error instanceof Problem && error.status === 404)) abort.abort();
    }
  }

  private async stream(
    key: string,
    conversation: string,
    { question, scope, length, alone }: Asked,
    signal: AbortSignal,
  ): Promise<void> {
    const response = await send("v1/ask", {
      method: "POST",
      body: {
        question,
        conversation_id: conversation,
        stream: true,
        ...(alone ? { standalone: true } : {}),
        ...(length === "normal" ? {} : { length }),
        ...scopeBody(scope),
      },
      headers: { Accept: "text/event-stream" },
      signal,
    });
    const requestId = response.headers.get("X-Request-Id");
    this.change(key, (turn) => ({ ...turn, requestId, state: "searching", waitingFor: null }));
    for await (const event of eventsOf(response)) this.change(key, (turn) => applied(turn, event));
    this.change(key, (turn) => {
      if (!isRunning(turn)) return turn;
      return { ...turn, state: "failed", problem: new Problem(0, "about:blank", "", "", null, turn.requestId) };
    });
  }

  private find(key: string): Turn | undefined {
    for (const turns of this.threads.values()) {
      const found = turns.find((turn) => turn.key === key);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  private change(key: string, next: (turn: Turn) => Turn): void {
    for (const [conversation, turns] of this.threads) {
      if (!turns.some((turn) => turn.key === key)) continue;
      this.threads.set(
        conversation,
        turns.map((turn) => (turn.key === key ? next(turn) : turn)),
      );
    }
    this.tell();
  }

  private setThread(conversation: string | null, turns: readonly Turn[]): void {
    this.threads.set(conversation ?? NEW, turns);
    this.tellNow();
  }

  /** The new conversation has got its id. */
  private move(id: string): void {
    this.threads.set(id, this.turns(null));
    this.drafts.set(id, this.draft(null));
    this.threads.delete(NEW);
    this.drafts.delete(NEW);
    this.tellNow();
  }

  /** Once a frame is often enough for words that come many times a second. */
  private tell(): void {
    this.frame ??= window.requestAnimationFrame(() => this.tellNow());
  }

  private tellNow(): void {
    if (this.frame !== null) window.cancelAnimationFrame(this.frame);
    this.frame = null;
    for (const listener of this.listeners) listener();
  }
}

const bySession = new WeakMap<Session, Runs>();

/** The runs of a session; another that signs in here finds none of them. */
export function runsOf(session: Session, queries: QueryClient): Runs {
  const known = bySession.get(session) ?? new Runs(queries);
  bySession.set(session, known);
  return known;
}

export function useTurns(runs: Runs, conversation: string | null): readonly Turn[] {
  return useSyncExternalStore(runs.subscribe, () => runs.turns(conversation));
}

export function useDraft(runs: Runs, conversation: string | null): Draft {
  return useSyncExternalStore(runs.subscribe, () => runs.draft(conversation));
}

/** A connection that breaks while an answer comes is a server that cannot be reached. */
function reached(error: unknown): unknown {
  return error instanceof TypeError ? new Problem(0, "about:blank", "", "", null, null) : error;
}
