/** Conditions on documents' details, a row each. */
import { useQuery } from "@tanstack/react-query";
import { useId } from "react";
import { request } from "../api/http";
import type { Document, Page } from "../api/types";
import { t } from "../strings";
import { type Condition, type Conditions, isComplete, needsValue, OPERATORS, type Operator, takesList } from "./filter";

interface ConditionRowsProps {
  conditions: Conditions;
  onChange: (conditions: Conditions) => void;
}

const LOOKED_AT = 100;

export function ConditionRows({ conditions, onChange }: ConditionRowsProps) {
  const words = t.ask.scope;
  const id = useId();
  const { match, rows } = conditions;
  const names = useFieldNames();

  function add() {
    const next = Math.max(0, ...rows.map((row) => row.id)) + 1;
    onChange({ match, rows: [...rows, { id: next, field: "", operator: "eq", value: "" }] });
  }

  return (
    <fieldset>
      <legend>{words.filter}</legend>
      <p className="quiet small">{words.filterHint}</p>
      {rows.length > 1 && (
        <p className="row">
          <label htmlFor={`${id}-match`}>{words.match}</label>
          <select
            id={`${id}-match`}
            value={match}
            onChange={(event) => onChange({ rows, match: event.target.value === "any" ? "any" : "all" })}
          >
            <option value="all">{words.all}</option>
            <option value="any">{words.any}</option>
          </select>
        </p>
      )}
      {rows.map((row, place) => (
        <Row
          key={row.id}
          row={row}
          number={place + 1}
          fields={`${id}-fields`}
          onChange={(next) => onChange({ match, rows: rows.map((one) => (one.id === row.id ? next : one)) })}
          onRemove={() => onChange({ match, rows: rows.filter((one) => one.id !== row.id) })}
        />
      ))}
      <datalist id={`${id}-fields`}>
        {names.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <button type="button" onClick={add}>
        <span aria-hidden="true">+</span> {words.addRow}
      </button>
    </fieldset>
  );
}

interface RowProps {
  row: Condition;
  number: number;
  fields: string;
  onChange: (row: Condition) => void;
  onRemove: () => void;
}

function Row({ row, number, fields, onChange, onRemove }: RowProps) {
  const words = t.ask.scope;
  const valueWords = takesList(row.operator) ? words.values : words.value;
  const begun = row.field !== "" || row.value !== "";
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset within a fieldset would be a box in a box
    <div className="ask-condition" role="group" aria-label={words.row(number)}>
      <input
        aria-label={words.field}
        placeholder={words.field}
        list={fields}
        maxLength={128}
        value={row.field}
        onChange={(event) => onChange({ ...row, field: event.target.value })}
      />
      <select
        aria-label={words.operator}
        value={row.operator}
        onChange={(event) => onChange({ ...row, operator: event.target.value as Operator })}
      >
        {OPERATORS.map((operator) => (
          <option key={operator} value={operator}>
            {words.operators[operator]}
          </option>
        ))}
      </select>
      {needsValue(row.operator) && (
        <input
          aria-label={valueWords}
          placeholder={valueWords}
          value={row.value}
          onChange={(event) => onChange({ ...row, value: event.target.value })}
        />
      )}
      <button type="button" className="plain" aria-label={words.removeRow(number)} onClick={onRemove}>
        <span aria-hidden="true">✕</span>
      </button>
      {begun && !isComplete(row) && <p className="small ask-incomplete">{words.incomplete}</p>}
    </div>
  );
}

/** Names of details that documents have, of the newest ones: suggestions, anything else can be typed. */
function useFieldNames(): string[] {
  const documents = useQuery({
    queryKey: ["documents", { limit: LOOKED_AT }],
    queryFn: ({ signal }) => request<Page<Document>>("v1/documents", { query: { limit: LOOKED_AT }, signal }),
  });
  const names = new Set((documents.data?.data ?? []).flatMap((one) => Object.keys(one.metadata)));
  return [...names].sort();
}
