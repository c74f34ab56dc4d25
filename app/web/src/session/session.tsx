/** Who is signed in: asked once, and again after signing in or out. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext } from "react";
import { Problem, request, setProvider, setToken } from "../api/http";
import type { Session, SignedOut } from "../api/types";

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
  return async () => {
    window.dispatchEvent(new Event("footnote-signing-out")); // what is put off is done while it still may be
    try {
      setProvider((await request<SignedOut>("v1/session", { method: "DELETE" })).openid);
    } finally {
      setToken(null);
      // The session's own query stays: what shows who is signed in is watching it.
      queries.setQueryData(["session"], null);
      queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== "session" });
    }
  };
}

async function current(): Promise<Session | null> {
  const offered = keyInAddress();
  if (offered !== null) {
    try {
      return await signIn(offered);
    } catch (error) {
      if (!(error instanceof Problem && error.status === 401)) throw error;
    }
  }
  try {
    const session = await request<Session>("v1/session");
    setToken(session.csrf_token);
    return session;
  } catch (error) {
    if (error instanceof Problem && error.status === 401) return null;
    throw error;
  }
}

/** The key in `#key=…`, which `footnote serve` prints: a fragment reaches no server and no log. It is taken out of the
 * address, so that it is not left in the history. */
function keyInAddress(): string | null {
  const found = /^#key=(.+)$/.exec(window.location.hash);
  if (found?.[1] === undefined) return null;
  window.history.replaceState(null, "", window.location.pathname + window.location.search);
  return decodeURIComponent(found[1]);
}
