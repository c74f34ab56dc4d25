/** What the page asks somebody who follows a link with a key, before the key signs them in. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect, useState, useSyncExternalStore } from "react";
import type { Session } from "../api/types";
import { t } from "../strings";
import { Dialog } from "../ui/Dialog";
import { ProblemNote } from "../ui/ProblemNote";
import { isSame, type Owner, offeredKey, onOffer, ownerOf, settle } from "./offered";
import { SignIn } from "./SignIn";
import { signIn, useSwitch } from "./session";

const words = t.offeredKey;

/** For somebody who is not signed in: the question whether to sign in with the link's key, or else the field for one. */
export function SignInOrOffer() {
  const key = useOfferedKey();
  const owner = useOwner(key);
  const [refused, setRefused] = useState(false);
  const isUnknown = key !== null && !owner.isPending && owner.data?.owner === null;
  useEffect(() => {
    if (!isUnknown) return;
    setRefused(true);
    settle();
  }, [isUnknown]);
  if (key === null || isUnknown) return <SignIn note={refused ? words.refused : null} />;
  if (owner.isPending) return <p className="centred quiet">{t.loading}</p>;
  return <Offer key={key} offered={key} owner={owner.data?.owner} />;
}

function Offer({ offered, owner }: { offered: string; owner: Owner }) {
  const queries = useQueryClient();
  return (
    <main className="sign-in">
      <h1>{t.product}</h1>
      <div className="card stack">
        <h2>{owner ? words.signInAs(owner.user_name, owner.tenant_id) : words.signIn}</h2>
        <p>{words.caution}</p>
        <Choice
          yes={words.yes}
          no={words.no}
          onYes={async () => {
            const session = await signIn(offered);
            queries.setQueryData(["session"], session);
            settle();
          }}
        />
      </div>
    </main>
  );
}

/** For somebody who is signed in: the session stays, unless they say that it should not. */
export function SwitchOrStay({ session }: { session: Session }) {
  const key = useOfferedKey();
  const owner = useOwner(key);
  const change = useSwitch();
  const found = owner.data?.owner;
  const isNothing = key !== null && !owner.isPending && found != null && isSame(found, session);
  useEffect(() => {
    if (isNothing) settle();
  }, [isNothing]);
  if (key === null || owner.isPending || isNothing) return null;
  return (
    <Dialog title={words.title} open onClose={settle}>
      <div className="stack">
        <p>{words.signedIn(session.user_name, session.tenant_id)}</p>
        {found === null ? (
          <>
            <p>{words.refused}</p>
            <div className="dialog-foot">
              <button type="button" className="primary" onClick={settle}>
                {words.stay}
              </button>
            </div>
          </>
        ) : (
          <>
            <p>{found ? words.linkIsFor(found.user_name, found.tenant_id) : words.linkIsForAnother}</p>
            <p>{words.caution}</p>
            <Choice yes={words.change} no={words.stay} onYes={() => change(key)} staying />
          </>
        )}
      </div>
    </Dialog>
  );
}

interface ChoiceProps {
  yes: string;
  no: string;
  onYes: () => Promise<void>;
  /** Whether the safe answer is the one that is suggested. */
  staying?: boolean;
}

function Choice({ yes, no, onYes, staying = false }: ChoiceProps) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);

  async function agree() {
    setBusy(true);
    setProblem(null);
    try {
      await onYes();
    } catch (error) {
      setProblem(error);
      setBusy(false);
    }
  }

  const answers: ReactNode[] = [
    <button key="no" type="button" className={staying ? "primary" : undefined} disabled={busy} onClick={settle}>
      {no}
    </button>,
    <button
      key="yes"
      type="button"
      className={staying ? undefined : "primary"}
      disabled={busy}
      onClick={() => void agree()}
    >
      {yes}
    </button>,
  ];
  return (
    <>
      {problem !== null && <ProblemNote problem={problem} />}
      <div className="dialog-foot">{answers}</div>
    </>
  );
}

function useOfferedKey(): string | null {
  return useSyncExternalStore(onOffer, offeredKey);
}

function useOwner(key: string | null) {
  return useQuery({
    queryKey: ["offered", key],
    queryFn: async () => ({ owner: await ownerOf(key ?? "") }), // in an object: a query has no undefined result
    enabled: key !== null,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
}
