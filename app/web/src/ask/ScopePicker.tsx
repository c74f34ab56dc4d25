/** Where to look: chips of what is chosen beside the question, and a dialog to choose. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useDeferredValue, useId, useState } from "react";
import { request } from "../api/http";
import type { Collection, Document, Page } from "../api/types";
import { t } from "../strings";
import { Dialog } from "../ui/Dialog";
import { MoreButton } from "../ui/MoreButton";
import { ProblemNote } from "../ui/ProblemNote";
import { ConditionRows } from "./ConditionRows";
import { ScopeChips } from "./ScopeChips";
import { EVERYTHING, isEverything, type Named, type Scope, toggled } from "./scope";

interface ScopePickerProps {
  scope: Scope;
  onChange: (scope: Scope) => void;
}

export function ScopePicker({ scope, onChange }: ScopePickerProps) {
  const words = t.ask.scope;
  const [open, setOpen] = useState(false);
  return (
    <div className="ask-scope">
      <button type="button" className="small" aria-haspopup="dialog" onClick={() => setOpen(true)}>
        {words.button}
        {isEverything(scope) && <span className="badge">{words.everything}</span>}
      </button>
      <ScopeChips scope={scope} onChange={onChange} />
      <Dialog title={words.title} open={open} onClose={() => setOpen(false)}>
        <div className="ask-picker">
          <p className="quiet small">{words.hint}</p>
          <Collections scope={scope} onChange={onChange} />
          <Documents scope={scope} onChange={onChange} />
          <ConditionRows conditions={scope.conditions} onChange={(conditions) => onChange({ ...scope, conditions })} />
        </div>
        <div className="dialog-foot">
          <button type="button" disabled={scope === EVERYTHING} onClick={() => onChange(EVERYTHING)}>
            {words.clear}
          </button>
          <button type="button" className="primary" onClick={() => setOpen(false)}>
            {words.done}
          </button>
        </div>
      </Dialog>
    </div>
  );
}

function Collections({ scope, onChange }: ScopePickerProps) {
  const words = t.ask.scope;
  const list = useInfiniteQuery({
    queryKey: ["collections", "list"],
    queryFn: ({ pageParam, signal }) =>
      request<Page<Collection>>("v1/collections", { query: { limit: 100, cursor: pageParam }, signal }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
  });
  const found = list.data?.pages.flatMap((page) => page.data) ?? [];
  if (list.isError) return <ProblemNote problem={list.error} onRetry={() => void list.refetch()} />;
  return (
    <fieldset>
      <legend>{words.collections}</legend>
      {list.isSuccess && found.length < 2 && scope.collections.length === 0 ? (
        <p className="quiet small">{words.collectionsNone}</p>
      ) : (
        <div className="ask-choices">
          {found.map(({ id, name, documents }) => (
            <Choice
              key={id}
              item={{ id, name }}
              note={words.size(documents)}
              chosen={scope.collections}
              onToggle={(item) => onChange({ ...scope, collections: toggled(scope.collections, item) })}
            />
          ))}
        </div>
      )}
      <MoreButton list={list} className="plain" />
    </fieldset>
  );
}

function Documents({ scope, onChange }: ScopePickerProps) {
  const words = t.ask.scope;
  const id = useId();
  const [typed, setTyped] = useState("");
  const q = useDeferredValue(typed.trim());
  const list = useQuery({
    queryKey: ["documents", { q, limit: 20, searchable: true }],
    queryFn: ({ signal }) =>
      request<Page<Document>>("v1/documents", { query: { q, limit: 20, searchable: true }, signal }),
    placeholderData: (before) => before,
  });
  const found = list.data?.data.map((one) => ({ id: one.id, name: one.filename })) ?? [];
  const elsewhere = scope.documents.filter((chosen) => !found.some((one) => one.id === chosen.id));
  return (
    <fieldset>
      <legend>{words.documents}</legend>
      <label htmlFor={id} className="visually-hidden">
        {words.search}
      </label>
      <input
        id={id}
        type="search"
        value={typed}
        placeholder={words.search}
        onChange={(event) => setTyped(event.target.value)}
      />
      {list.isError && <ProblemNote problem={list.error} onRetry={() => void list.refetch()} />}
      {list.isSuccess && found.length === 0 && q !== "" && <p className="quiet small">{words.searchNone}</p>}
      <div className="ask-choices">
        {[...elsewhere, ...found].map((item) => (
          <Choice
            key={item.id}
            item={item}
            chosen={scope.documents}
            onToggle={(one) => onChange({ ...scope, documents: toggled(scope.documents, one) })}
          />
        ))}
      </div>
    </fieldset>
  );
}

interface ChoiceProps {
  item: Named;
  note?: string;
  chosen: readonly Named[];
  onToggle: (item: Named) => void;
}

function Choice({ item, note, chosen, onToggle }: ChoiceProps) {
  return (
    <label>
      <input type="checkbox" checked={chosen.some((one) => one.id === item.id)} onChange={() => onToggle(item)} />
      <span>{item.name}</span>
      {note !== undefined && <span className="quiet small">{note}</span>}
    </label>
  );
}
