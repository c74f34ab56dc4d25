/** Who is signed in: asked once, and again after signing in or out. */
import { onlineManager, type QueryClient, type QueryFilters, useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext } from "react";
import { request, setProvider, setToken } from "../api/http";
import type { Session, SessionState, SignedOut } from "../api/types";

/** All queries but the session's own, from which the page knows who is signed in. */
const OTHERS: QueryFilters = { predicate: ({ queryKey }) => queryKey[0] !== "session" };

const SessionContext = createContext<Session | null>(null);

/** The session at hand; only inside of what needs one. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error("nobody is signed in here");
  return session;
}

/** Its state while the page finds out, `null` when nobody is signed in. */
export function useCurrentSession() {
  return useQuery({ queryKey: ["session"], queryFn: current, retry: false, staleTime: Number.POSITIVE_INFINITY });
}

export function SessionProvider({ session, children }: { session: Session; children: ReactNode }) {
  return <SessionContext value={session}>{children}</SessionContext>;
}

/** Opens a session for a key. The key is not kept: the cookie is what signs the page in from now on. */
export async function signIn(key: string): Promise<Session> {
  const session = await request<Session>("v1/session", { method: "POST", body: { key } });
  setToken(session.csrf_token);
  return session;
}

export function useSignOut(): () => Promise<void> {
  const queries = useQueryClient();
  return () =>
    withoutQueries(queries, async () => {
      try {
        await endSession();
      } finally {
        setToken(null);
        queries.setQueryData(["session"], null);
        queries.removeQueries(OTHERS);
      }
    });
}

/** A function that ends the session at hand and opens one for another key. The page starts anew, so that nothing of the
 * one is shown to the other. */
export function useSwitch(): (key: string) => Promise<void> {
  const queries = useQueryClient();
  return (key) =>
    withoutQueries(queries, async () => {
      await endSession();
      try {
        await signIn(key);
      } finally {
        window.location.reload();
      }
    });
}

/** Ends a session with all other queries cancelled and new ones held back: the server would refuse them. */
async function withoutQueries(queries: QueryClient, end: () => Promise<void>): Promise<void> {
  onlineManager.setOnline(false); // a query that begins now waits
  try {
    await queries.cancelQueries(OTHERS);
    await end();
  } finally {
    onlineManager.setOnline(true);
  }
}

async function endSession(): Promise<void> {
  window.dispatchEvent(new Event("footnote-signing-out")); // what is put off is done while it still may be
  setProvider((await request<SignedOut>("v1/session", { method: "DELETE" })).openid);
}

async function current(): Promise<Session | null> {
  const { session, openid } = await request<SessionState>("v1/session/state");
  setProvider(openid);
  setToken(session?.csrf_token ?? null);
  return session;
}
