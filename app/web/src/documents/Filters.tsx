/** The search field and the filters over the list. */
import { useId } from "react";
import type { DocumentStatus } from "../api/types";
import { t } from "../strings";
import type { Comparison, Condition } from "./metadata";
import { TypingField } from "./TypingField";
import type { View } from "./view";
import { statusWord } from "./words";

const STATUSES: readonly DocumentStatus[] = ["indexed", "queued", "extracting", "chunking", "embedding", "failed"];
const COMPARISONS: readonly Comparison[] = ["is", "isNot", "atLeast", "atMost", "present"];

interface FiltersProps {
  view: View;
  /** Names of fields that documents have. */
  fields: readonly string[];
  onView: (view: View) => void;
}

export function Filters({ view, fields, onView }: FiltersProps) {
  const id = useId();
  const words = t.documents.filters;
  const change = (index: number, changed: Condition | null) =>
    onView({
      ...view,
      conditions: view.conditions.flatMap((one, place) =>
        place !== index ? [one] : changed === null ? [] : [changed],
      ),
    });

  function add() {
    const last = view.conditions.at(-1)?.id ?? 0;
    onView({ ...view, conditions: [...view.conditions, { id: last + 1, field: "", how: "is", value: "" }] });
  }

  return (
    <search className="filters">
      <div className="row">
        <TypingField
          type="search"
          className="search-field"
          placeholder={words.search}
          aria-label={words.search}
          maxLength={500}
          value={view.q}
          onValue={(q) => onView({ ...view, q })}
        />
        <select
          aria-label={words.status}
          value={view.status ?? ""}
          onChange={({ target }) => onView({ ...view, status: STATUSES.find((one) => one === target.value) ?? null })}
        >
          <option value="">{words.anyStatus}</option>
          {STATUSES.map((status) => (
            <option key={status} value={status}>
              {statusWord(status)}
            </option>
          ))}
        </select>
        <button type="button" className="plain" onClick={add}>
          {words.add}
        </button>
      </div>
      {view.conditions.map((condition, index) => (
        <ConditionRow
          key={condition.id}
          condition={condition}
          list={id}
          onChange={(changed) => change(index, changed)}
        />
      ))}
      <datalist id={id}>
        {fields.map((field) => (
          <option key={field} value={field} />
        ))}
      </datalist>
    </search>
  );
}

interface ConditionRowProps {
  condition: Condition;
  list: string;
  onChange: (condition: Condition | null) => void;
}

function ConditionRow({ condition, list, onChange }: ConditionRowProps) {
  const words = t.documents.filters;
  return (
    <div className="row condition">
      <TypingField
        aria-label={words.field}
        placeholder={words.field}
        list={list}
        maxLength={128}
        value={condition.field}
        onValue={(field) => onChange({ ...condition, field })}
      />
      <select
        aria-label={words.how}
        value={condition.how}
        onChange={({ target }) =>
          onChange({ ...condition, how: COMPARISONS.find((one) => one === target.value) ?? "is" })
        }
      >
        {COMPARISONS.map((how) => (
          <option key={how} value={how}>
            {words[how]}
          </option>
        ))}
      </select>
      {condition.how !== "present" && (
        <TypingField
          aria-label={words.value}
          placeholder={words.value}
          value={condition.value}
          onValue={(value) => onChange({ ...condition, value })}
        />
      )}
      <button type="button" className="plain" aria-label={words.remove} onClick={() => onChange(null)}>
        <span aria-hidden="true">✕</span>
      </button>
    </div>
  );
}
