import { useEffect, useId, useRef } from "react";
import { t } from "../strings";
import { ProblemNote } from "../ui/ProblemNote";
import type { Find } from "./useFind";

/** The longest phrase the server takes. */
const LONGEST = 200;

/** Where words are searched for in the document: Ctrl+F or "/" goes there, Enter to the next place. */
export function FindBar({ find }: { find: Find }) {
  const words = t.viewer.find;
  const id = useId();
  const field = useRef<HTMLInputElement>(null);
  useShortcut(field);
  const several = find.hits.length > 0;
  return (
    <search className="find-bar">
      <label htmlFor={id} className="visually-hidden">
        {words.label}
      </label>
      <input
        id={id}
        ref={field}
        type="search"
        autoComplete="off"
        maxLength={LONGEST}
        placeholder={words.label}
        aria-keyshortcuts="Control+F /"
        title={words.keys}
        value={find.typed}
        onChange={(event) => find.onType(event.target.value)}
        onKeyDown={(event) => {
          if (event.nativeEvent.isComposing) return;
          if (event.key === "Enter") {
            event.preventDefault();
            find.go(event.shiftKey ? -1 : 1);
          } else if (event.key === "Escape") {
            find.onType("");
            event.currentTarget.blur();
          }
        }}
      />
      <button
        type="button"
        disabled={!several}
        onClick={() => find.go(-1)}
        aria-label={words.previous}
        title={words.previous}
      >
        <span aria-hidden="true">↑</span>
      </button>
      <button type="button" disabled={!several} onClick={() => find.go(1)} aria-label={words.next} title={words.next}>
        <span aria-hidden="true">↓</span>
      </button>
      <output htmlFor={id} className="small">
        {said(find)}
      </output>
      {find.problem !== null && <ProblemNote problem={find.problem} />}
    </search>
  );
}

/** "3 of 17", with the page for those who do not see it. */
function said({ typed, known, at, hits, total, current }: Find) {
  const words = t.viewer.find;
  if (typed.trim() === "" || !known) return "";
  if (current === null) return words.none;
  return (
    <>
      {total > hits.length ? words.ofFirst(at + 1, hits.length, total) : words.of(at + 1, total)}
      {current.page_start !== null && <span className="visually-hidden">, {t.viewer.page(current.page_start)}</span>}
    </>
  );
}

/** Ctrl+F goes to the field; a second time it is the browser's own search. */
function useShortcut(field: { current: HTMLInputElement | null }) {
  useEffect(() => {
    function onKey(event: KeyboardEvent) {
      const { target } = event;
      const find =
        event.key.toLowerCase() === "f" && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey;
      const slash = event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && !isField(target);
      const shown = field.current;
      if ((!find && !slash) || shown === null || target === shown || document.querySelector("dialog[open]")) return;
      event.preventDefault();
      shown.focus();
      shown.select();
    }
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [field]);
}

function isField(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches("input, textarea, select, [contenteditable]");
}
