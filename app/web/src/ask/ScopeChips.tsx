/** Where a question looks, as chips; with a way to take each away where it can be changed. */
import { t } from "../strings";
import { type Condition, isComplete, listOf, needsValue, takesList } from "./filter";
import { type Scope, toggled } from "./scope";

interface ScopeChipsProps {
  scope: Scope;
  onChange?: (scope: Scope) => void;
}

export function ScopeChips({ scope, onChange }: ScopeChipsProps) {
  const { collections, documents, conditions } = scope;
  const without = (id: number) => conditions.rows.filter((row) => row.id !== id);
  const chips = [
    ...collections.map((one) => ({
      key: one.id,
      name: one.name,
      next: { ...scope, collections: toggled(collections, one) },
    })),
    ...documents.map((one) => ({
      key: one.id,
      name: one.name,
      next: { ...scope, documents: toggled(documents, one) },
    })),
    ...conditions.rows.filter(isComplete).map((row) => ({
      key: `row-${row.id}`,
      name: conditionWords(row),
      next: { ...scope, conditions: { ...conditions, rows: without(row.id) } },
    })),
  ];
  return (
    <ul className="ask-chips">
      {chips.map(({ key, name, next }) => (
        <li key={key} className="ask-chip">
          <span>{name}</span>
          {onChange !== undefined && (
            <button
              type="button"
              className="plain"
              aria-label={t.ask.scope.removeChip(name)}
              onClick={() => onChange(next)}
            >
              <span aria-hidden="true">✕</span>
            </button>
          )}
        </li>
      ))}
    </ul>
  );
}

function conditionWords({ field, operator, value }: Condition): string {
  const words = `${field.trim()} ${t.ask.scope.operators[operator]}`;
  if (!needsValue(operator)) return words;
  return `${words} ${takesList(operator) ? listOf(value).join(", ") : value.trim()}`;
}
