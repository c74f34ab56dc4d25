/** What somebody sees who follows an invitation or a sign-in link: who sends it, and the question whether to use it. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, useSyncExternalStore } from "react";
import { Problem } from "../api/http";
import type { InvitationPreview, Session } from "../api/types";
import { t } from "../strings";
import { Dialog } from "../ui/Dialog";
import { ProblemNote } from "../ui/ProblemNote";
import { SecretDialog } from "../ui/SecretDialog";
import {
  accept,
  invitationToken,
  newKey,
  onInvitation,
  onNewKey,
  preview,
  setNewKey,
  settleInvitation,
} from "./invited";
import { SignInOrOffer } from "./OfferedKey";
import { useSignOut } from "./session";

const words = t.invitation;

/** For somebody who is not signed in: the invitation that they follow, or else the ways to sign in. */
export function SignInOrJoin() {
  const token = useSyncExternalStore(onInvitation, invitationToken);
  return token === null ? <SignInOrOffer /> : <Join key={token} token={token} />;
}

function Join({ token }: { token: string }) {
  const queries = useQueryClient();
  const found = usePreview(token);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);

  async function join() {
    setBusy(true);
    setProblem(null);
    try {
      const { session, key } = await accept(token);
      setNewKey(key.secret);
      queries.setQueryData(["session"], session);
      settleInvitation();
    } catch (error) {
      setProblem(error);
      setBusy(false);
    }
  }

  if (found.isPending) return <p className="centred quiet">{t.loading}</p>;
  return (
    <main className="sign-in">
      <h1>{t.product}</h1>
      <div className="card stack">
        {found.isError ? (
          <>
            <h2>{words.notValidTitle}</h2>
            <ProblemNote problem={found.error} />
            <div className="dialog-foot">
              <button type="button" className="primary" onClick={settleInvitation}>
                {words.toSignIn}
              </button>
            </div>
          </>
        ) : (
          <>
            <h2>{titleOf(found.data)}</h2>
            <Terms invitation={found.data} />
            {problem !== null && <ProblemNote problem={problem} />}
            <div className="dialog-foot">
              <button type="button" disabled={busy} onClick={settleInvitation}>
                {words.not}
              </button>
              <button type="button" className="primary" disabled={busy} onClick={() => void join()}>
                {found.data.kind === "invitation" ? words.join : words.signIn}
              </button>
            </div>
          </>
        )}
      </div>
    </main>
  );
}

/** For somebody who is signed in: the session stays, unless they say that it should not. */
export function JoinOrStay({ session }: { session: Session }) {
  const token = useSyncExternalStore(onInvitation, invitationToken);
  const found = usePreview(token);
  const signOut = useSignOut();
  if (token === null || found.isPending) return null;
  return (
    <Dialog title={found.isError ? words.notValidTitle : words.switchTitle} open onClose={settleInvitation}>
      <div className="stack">
        {found.isError ? (
          <ProblemNote problem={found.error} />
        ) : (
          <>
            <p>
              <strong>{titleOf(found.data)}</strong>
            </p>
            <Terms invitation={found.data} />
            <p>{words.signedIn(session.user_name)}</p>
          </>
        )}
      </div>
      <div className="dialog-foot">
        <button type="button" className="primary" onClick={settleInvitation}>
          {words.stay}
        </button>
        {!found.isError && (
          <button type="button" onClick={() => void signOut()}>
            {words.signOut}
          </button>
        )}
      </div>
    </Dialog>
  );
}

/** The key of somebody who has just come in: they need it when this session is over. */
export function FirstKey({ session }: { session: Session }) {
  const secret = useSyncExternalStore(onNewKey, newKey);
  if (secret === null) return null;
  return (
    <SecretDialog
      title={words.keyTitle(session.user_name)}
      label={words.keyLabel}
      secret={secret}
      onClose={() => setNewKey(null)}
    >
      <p>{words.keyLead}</p>
    </SecretDialog>
  );
}

function titleOf({ kind, invited_by_name: inviter, tenant_name: tenant }: InvitationPreview): string {
  return kind === "invitation" ? words.invites(inviter, tenant) : words.signsIn(tenant);
}

function Terms({ invitation }: { invitation: InvitationPreview }) {
  const { name, role, collections } = invitation;
  return (
    <>
      <p>
        {words.as(name)} {words.may[role]} {reachOf(collections)}
      </p>
      <p className="quiet">{words.caution}</p>
    </>
  );
}

function reachOf(collections: readonly string[] | null): string {
  if (collections === null) return words.all;
  return collections.length === 0 ? words.none : words.only(collections.join(", "));
}

function usePreview(token: string | null) {
  return useQuery({
    queryKey: ["invitation", token],
    queryFn: () => preview(token ?? ""),
    enabled: token !== null,
    retry: (failures, error) =>
      failures < 2 && !(error instanceof Problem && error.status >= 400 && error.status < 500),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
}
