/** Where a question is written: Enter sends it, and while it is answered it can be stopped. */
import { type FormEvent, type KeyboardEvent, useEffect, useId, useRef } from "react";
import { t } from "../strings";
import { ROOMY, useMedia } from "./media";
import type { Draft, Length } from "./runs";
import { ScopePicker } from "./ScopePicker";
import type { Turn } from "./turn";

interface ComposerProps {
  draft: Draft;
  onDraft: (draft: Draft) => void;
  running: Turn | null;
  followUp: boolean;
  onAsk: (question: string) => void;
  onStop: () => void;
  /** Goes to the newest text; null where that is in view. */
  onLatest: (() => void) | null;
}

export function Composer({ draft, onDraft, running, followUp, onAsk, onStop, onLatest }: ComposerProps) {
  const words = t.ask.composer;
  const id = useId();
  const area = useRef<HTMLTextAreaElement>(null);
  const roomy = useMedia(ROOMY);

  useEffect(() => {
    // On a phone the keyboard would cover what there is to read.
    if (roomy) area.current?.focus({ preventScroll: true });
  }, [roomy]);

  const isRunning = running !== null;
  // biome-ignore lint/correctness/useExhaustiveDependencies: buttons come and go when an answer begins and ends
  useEffect(() => {
    // What had the focus may be gone with it.
    const { activeElement } = document;
    const lost =
      activeElement === document.body || (activeElement instanceof HTMLButtonElement && activeElement.disabled);
    if (roomy && lost) area.current?.focus({ preventScroll: true });
  }, [isRunning]);

  useEffect(() => {
    const shown = area.current;
    if (shown === null) return;
    // As tall as what is in it; the style sheet has the limit.
    shown.style.height = "auto";
    if (draft.text !== "") shown.style.height = `${shown.scrollHeight + 2}px`;
  }, [draft.text]);

  function submit(event?: FormEvent) {
    event?.preventDefault();
    const question = draft.text.trim();
    if (question !== "" && running === null) onAsk(question);
  }

  function onKeyDown(event: KeyboardEvent) {
    // While a word is put together, as in Japanese, Enter ends the word.
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    submit();
  }

  return (
    <form className="ask-composer" onSubmit={submit}>
      {onLatest !== null && (
        <button type="button" className="ask-latest" onClick={onLatest}>
          <span aria-hidden="true">↓</span> {words.latest}
        </button>
      )}
      <div className="row ask-limits">
        <ScopePicker scope={draft.scope} onChange={(scope) => onDraft({ ...draft, scope })} />
        <select
          className="ask-length"
          aria-label={words.length}
          value={draft.length}
          onChange={(event) => onDraft({ ...draft, length: event.target.value as Length })}
        >
          {(["short", "normal", "long"] as const).map((length) => (
            <option key={length} value={length}>
              {words.lengths[length]}
            </option>
          ))}
        </select>
      </div>
      <div className="ask-write">
        <label htmlFor={id} className="visually-hidden">
          {words.label}
        </label>
        <textarea
          id={id}
          ref={area}
          rows={1}
          value={draft.text}
          placeholder={followUp ? words.followUp : words.placeholder}
          aria-describedby={`${id}-keys`}
          onChange={(event) => onDraft({ ...draft, text: event.target.value })}
          onKeyDown={onKeyDown}
        />
        {running === null ? (
          <button type="submit" className="primary" disabled={draft.text.trim() === ""}>
            {words.send}
          </button>
        ) : (
          <button
            type="button"
            disabled={running.stopping}
            onClick={(event) => {
              // The second click of two on what was the button that asks.
              if (event.detail < 2) onStop();
            }}
          >
            <span aria-hidden="true">■</span> {running.stopping ? words.stopping : words.stop}
          </button>
        )}
      </div>
      <p id={`${id}-keys`} className="quiet small ask-keys">
        {words.keys}
      </p>
    </form>
  );
}
