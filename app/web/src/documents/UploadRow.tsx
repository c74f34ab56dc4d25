/** A file that is being added: where it stands, and what somebody can do about it. */
import { type FormEvent, useState } from "react";
import { Link } from "wouter";
import type { Document } from "../api/types";
import { t } from "../strings";
import type { Phase, Upload } from "./queue";
import { useUploads } from "./UploadProvider";
import { sizeWords, stageWords } from "./words";

export function UploadRow({ upload }: { upload: Upload }) {
  const uploads = useUploads();
  const words = t.documents.uploads;
  const { id, name, path, size, phase } = upload;
  const document = "document" in phase ? phase.document : null;
  const isUnsent = phase.at === "waiting" || phase.at === "checking" || phase.at === "sending";
  return (
    <li className={`upload ${toneOf(phase)} ${asksFor(phase) ? "asks" : ""}`}>
      <div className="upload-name">
        <span title={path}>{path}</span> <span className="quiet small">{size > 0 && sizeWords(size)}</span>
      </div>
      <p className="upload-state small">{stateWords(phase, size, name)}</p>
      <span className="row upload-actions">
        {phase.at === "asking" && (
          <>
            <button type="button" onClick={() => uploads.choose(id, "version", false)}>
              {words.asVersion}
            </button>
            <button type="button" onClick={() => uploads.choose(id, "both", false)}>
              {words.keepBoth}
            </button>
            <button type="button" onClick={() => uploads.choose(id, "skip", false)}>
              {words.skip}
            </button>
          </>
        )}
        {phase.at === "failed" && phase.retry && phase.code !== "encrypted" && (
          <button type="button" aria-label={words.retryName(name)} onClick={() => void uploads.retry(id)}>
            {words.retry}
          </button>
        )}
        {phase.at === "failed" && phase.code === "encrypted" && phase.retry && (
          <PasswordForm onPassword={(password) => void uploads.retry(id, password)} />
        )}
        {phase.at === "done" && document !== null && (
          <Link className="button" href={`/documents/${document.id}`} aria-label={words.openName(name)}>
            {words.open}
          </Link>
        )}
        {phase.at !== "asking" && phase.at !== "working" && (
          <button
            type="button"
            className="plain"
            aria-label={isUnsent ? words.cancelName(name) : words.removeName(name)}
            title={isUnsent ? words.cancel : words.remove}
            onClick={() => uploads.remove(id)}
          >
            <span aria-hidden="true">✕</span>
          </button>
        )}
      </span>
      <Bar phase={phase} size={size} name={name} />
    </li>
  );
}

/** How far it is; without a number where that is not known. */
function Bar({ phase, size, name }: { phase: Phase; size: number; name: string }) {
  if (phase.at === "sending") {
    const all = phase.loaded >= size;
    return <progress aria-label={name} {...(all ? {} : { max: Math.max(1, size), value: phase.loaded })} />;
  }
  if (phase.at !== "working" || phase.document.status === "queued") return null;
  const { progress } = phase.document;
  const known = progress !== null && progress.total > 0;
  return <progress aria-label={name} {...(known ? { max: progress.total, value: progress.done } : {})} />;
}

interface PasswordFormProps {
  onPassword: (password: string) => void;
}

/** Asks for what opens a protected file. */
export function PasswordForm({ onPassword }: PasswordFormProps) {
  const [password, setPassword] = useState("");
  const words = t.documents.uploads;
  function submit(event: FormEvent) {
    event.preventDefault();
    onPassword(password);
  }
  return (
    <form className="row" onSubmit={submit}>
      <input
        type="password"
        autoComplete="off"
        aria-label={words.password}
        placeholder={words.password}
        maxLength={1024}
        required
        value={password}
        onChange={(event) => setPassword(event.target.value)}
      />
      <button type="submit">{words.retry}</button>
    </form>
  );
}

function stateWords(phase: Phase, size: number, name: string): string {
  const words = t.documents.uploads;
  switch (phase.at) {
    case "waiting":
      return words.waiting;
    case "checking":
      return words.checking;
    case "asking":
      return words.sameName(name);
    case "sending":
      if (phase.loaded >= size) return words.arrived;
      return phase.loaded === 0 ? words.sending : words.sendingPart(Math.floor((100 * phase.loaded) / size));
    case "working":
      return stageWords(phase.document);
    case "unpacked":
      return words.unpacked(phase.documents);
    case "failed":
      return phase.words;
    case "done":
      return doneWords(phase.how, phase.document, name);
  }
}

function doneWords(how: "ready" | "duplicate" | "skipped" | "gone", document: Document | null, name: string): string {
  const words = t.documents.uploads;
  switch (how) {
    case "ready":
      return document !== null && document.version > 1 ? words.newVersion(document.version) : words.indexed;
    case "duplicate":
      return document !== null && document.filename !== name ? words.duplicateAs(document.filename) : words.duplicate;
    case "skipped":
      return words.skipped;
    case "gone":
      return words.gone;
  }
}

/** Whether there is more to press than fits beside the name on a phone. */
function asksFor(phase: Phase): boolean {
  return phase.at === "asking" || (phase.at === "failed" && phase.retry && phase.code === "encrypted");
}

function toneOf(phase: Phase): string {
  if (phase.at === "failed") return "bad";
  if (phase.at === "asking") return "warn";
  return phase.at === "done" && phase.how === "ready" ? "good" : "";
}
