/** A document's own fields, to be read and changed. */
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Document } from "../api/types";
import { t } from "../strings";
import { ProblemNote } from "../ui/ProblemNote";
import { inexact, type Kind, metadataOf, type Row, rowsOf } from "./metadata";
import { changeMetadata } from "./server";
import { noteDocument } from "./UploadProvider";

const KINDS: readonly Kind[] = ["text", "number", "truth", "list", "empty"];

export function MetadataEditor({ document, mayChange }: { document: Document; mayChange: boolean }) {
  const queries = useQueryClient();
  const words = t.documents.metadata;
  const [rows, setRows] = useState(() => rowsOf(document.metadata));
  const [wrong, setWrong] = useState<string | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const [isChanged, setChanged] = useState(false);
  const [isSaved, setSaved] = useState(false);
  const [unwritable] = inexact(document.metadata);
  const isFixed = !mayChange || unwritable !== undefined;

  function change(next: Row[]) {
    setRows(next);
    setChanged(true);
    setSaved(false);
    setWrong(null);
  }

  async function save() {
    const read = metadataOf(rows);
    if ("wrong" in read) {
      setWrong(read.wrong);
      return;
    }
    setBusy(true);
    setProblem(null);
    try {
      noteDocument(queries, await changeMetadata(document.id, read.metadata));
      setChanged(false);
      setSaved(true);
    } catch (error) {
      setProblem(error);
    }
    setBusy(false);
  }

  return (
    <section className="metadata">
      <h3>{words.title}</h3>
      {mayChange && <p className="quiet small">{words.explain}</p>}
      {rows.length === 0 && isFixed && <p className="quiet">{words.none}</p>}
      {unwritable !== undefined && mayChange && <p className="held small">{words.tooLong(unwritable)}</p>}
      <ul>
        {rows.map((row, index) => (
          <FieldRow
            key={row.id}
            row={row}
            isFixed={isFixed}
            onChange={(changed) => change(rows.map((one, place) => (place === index ? changed : one)))}
            onRemove={() => change(rows.filter((_, place) => place !== index))}
          />
        ))}
      </ul>
      {wrong !== null && (
        <p role="alert" className="problem">
          {wrong}
        </p>
      )}
      {problem !== null && <ProblemNote problem={problem} />}
      {!isFixed && (
        <div className="row">
          <button
            type="button"
            onClick={() => {
              const id = Math.max(0, ...rows.map((row) => row.id + 1));
              change([...rows, { id, key: "", kind: "text", value: "" }]);
            }}
          >
            {words.add}
          </button>
          {isChanged && (
            <button type="button" className="primary" disabled={busy} onClick={() => void save()}>
              {words.save}
            </button>
          )}
          {/* In here: what is said behind an open dialog is not seen. */}
          <p role="status" className="saved small">
            {isSaved && words.saved}
          </p>
        </div>
      )}
    </section>
  );
}

interface FieldRowProps {
  row: Row;
  isFixed: boolean;
  onChange: (row: Row) => void;
  onRemove: () => void;
}

function FieldRow({ row, isFixed, onChange, onRemove }: FieldRowProps) {
  const words = t.documents.metadata;
  const { key, kind } = row;

  function turn(next: Kind) {
    // What cannot be read as the new kind is left for whoever is editing to mend; yes or no has no text.
    const value = next === "truth" ? String(row.value === "true") : kind === "truth" ? "" : row.value;
    onChange({ ...row, kind: next, value });
  }

  return (
    <li className="row metadata-row">
      <input
        className="key"
        aria-label={words.key}
        placeholder={words.key}
        value={key}
        maxLength={128}
        disabled={isFixed}
        onChange={(event) => onChange({ ...row, key: event.target.value })}
      />
      <select
        aria-label={words.kind}
        value={kind}
        disabled={isFixed}
        onChange={({ target }) => turn(KINDS.find((one) => one === target.value) ?? "text")}
      >
        {KINDS.map((one) => (
          <option key={one} value={one}>
            {words.kinds[one]}
          </option>
        ))}
      </select>
      <ValueField row={row} isFixed={isFixed} onChange={onChange} />
      {!isFixed && (
        <button
          type="button"
          className="plain"
          aria-label={key === "" ? words.remove : words.removeName(key)}
          onClick={onRemove}
        >
          <span aria-hidden="true">✕</span>
        </button>
      )}
    </li>
  );
}

function ValueField({ row, isFixed, onChange }: Omit<FieldRowProps, "onRemove">) {
  const words = t.documents.metadata;
  if (row.kind === "empty") return <span className="value" />;
  if (row.kind === "truth") {
    return (
      <select
        className="value"
        aria-label={words.value}
        value={row.value}
        disabled={isFixed}
        onChange={({ target }) => onChange({ ...row, value: target.value })}
      >
        <option value="true">{words.yes}</option>
        <option value="false">{words.no}</option>
      </select>
    );
  }
  return (
    <input
      className="value"
      aria-label={words.value}
      placeholder={row.kind === "list" ? words.listHint : words.value}
      inputMode={row.kind === "number" ? "decimal" : "text"}
      value={row.value}
      disabled={isFixed}
      onChange={(event) => onChange({ ...row, value: event.target.value })}
    />
  );
}
