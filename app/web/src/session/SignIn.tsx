import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useEffect, useId, useRef, useState } from "react";
import { address, hasProvider } from "../api/http";
import { t } from "../strings";
import { ProblemNote } from "../ui/ProblemNote";
import { signIn } from "./session";

/** The first thing somebody sees who is not signed in: what this is, and where to find a key. `note` is said above it. */
export function SignIn({ note }: { note: string | null }) {
  const queries = useQueryClient();
  const id = useId();
  const field = useRef<HTMLInputElement>(null);
  const [key, setKey] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);

  useEffect(() => field.current?.focus(), []); // all that is to be done here

  async function submit(event: FormEvent) {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      queries.setQueryData(["session"], await signIn(key.trim()));
    } catch (error) {
      setProblem(error);
      setBusy(false);
    }
  }

  return (
    <main className="sign-in">
      <h1>{t.product}</h1>
      <p className="lead">{t.signIn.promise}</p>
      {note !== null && (
        <p className="problem" role="alert">
          {note}
        </p>
      )}
      <form onSubmit={submit} className="card stack">
        <label htmlFor={id}>{t.signIn.key}</label>
        <input
          ref={field}
          id={id}
          type="password"
          autoComplete="current-password"
          spellCheck={false}
          required
          placeholder="fn_…"
          value={key}
          onChange={(event) => setKey(event.target.value)}
        />
        <p className="quiet small">{t.signIn.where}</p>
        {problem !== null && <ProblemNote problem={problem} />}
        <button type="submit" className="primary" disabled={busy || key.trim() === ""}>
          {t.signIn.submit}
        </button>
        {hasProvider() && (
          <a className="button" href={address("v1/session/oidc/login")}>
            {t.signIn.provider}
          </a>
        )}
      </form>
    </main>
  );
}
