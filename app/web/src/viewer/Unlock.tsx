import { type FormEvent, useId, useState } from "react";
import { t } from "../strings";
import type { Locked } from "./usePdf";

/** Asks for the password of a PDF that opens with one. */
export function Unlock({ locked }: { locked: Locked }) {
  const id = useId();
  const [password, setPassword] = useState("");

  function submit(event: FormEvent) {
    event.preventDefault();
    locked.attempt(password);
    setPassword("");
  }

  return (
    <form className="card stack unlock" onSubmit={submit}>
      <p>{t.viewer.locked}</p>
      {locked.wrong && (
        <p className="problem" role="alert">
          {t.viewer.wrongPassword}
        </p>
      )}
      <label htmlFor={id}>{t.viewer.password}</label>
      <input
        id={id}
        type="password"
        autoComplete="off"
        required
        value={password}
        onChange={(event) => setPassword(event.target.value)}
      />
      <button type="submit" className="primary">
        {t.viewer.unlock}
      </button>
    </form>
  );
}
