import { useId } from "react";
import type { Collection } from "../api/types";
import { t } from "../strings";

const WORDS = t.admin.keys;

interface CollectionChoiceProps {
  collections: readonly Collection[];
  /** Null is all of them. */
  chosen: readonly string[] | null;
  /** Who is limited to collections cannot give away all of them. */
  limited: boolean;
  error: string | null;
  onChange: (chosen: readonly string[] | null) => void;
}

/** Which collections a key reaches: all, also those to come, or some. */
export function CollectionChoice({ collections, chosen, limited, error, onChange }: CollectionChoiceProps) {
  const id = useId();
  return (
    <fieldset aria-describedby={error === null ? undefined : `${id}-error`}>
      <legend>{WORDS.reach}</legend>
      {!limited && (
        <label className="check">
          <input type="radio" name={id} checked={chosen === null} onChange={() => onChange(null)} />
          {WORDS.all}
        </label>
      )}
      <label className="check">
        <input type="radio" name={id} checked={chosen !== null} onChange={() => onChange(chosen ?? [])} />
        {WORDS.only}
      </label>
      {chosen !== null && (
        <div className="choices">
          {collections.map((collection) => (
            <label className="check" key={collection.id}>
              <input
                type="checkbox"
                checked={chosen.includes(collection.id)}
                onChange={(event) =>
                  onChange(
                    event.target.checked ? [...chosen, collection.id] : chosen.filter((one) => one !== collection.id),
                  )
                }
              />
              {collection.name}
            </label>
          ))}
        </div>
      )}
      {error !== null && (
        <p id={`${id}-error`} className="field-error small" role="alert">
          {error}
        </p>
      )}
    </fieldset>
  );
}
