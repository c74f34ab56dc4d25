/** Whether an answer was good, and what was wrong where it was not. */
import { type FormEvent, useEffect, useId, useRef, useState } from "react";
import type { Feedback } from "../api/types";
import { t } from "../strings";
import { useNotices } from "../ui/notices";
import { verdictOf } from "../ui/verdict";
import { commented, LONGEST_COMMENT, pressed } from "./feedback";
import { useFeedback } from "./useFeedback";

interface FeedbackButtonsProps {
  conversation: string;
  requestId: string;
  said: Feedback | null;
}

export function FeedbackButtons({ conversation, requestId, said }: FeedbackButtonsProps) {
  const words = t.ask.feedback;
  const say = useNotices();
  const [writing, setWriting] = useState(false);
  const toggle = useRef<HTMLButtonElement>(null);
  const { mutate } = useFeedback(conversation, requestId);
  const verdict = said === null ? null : verdictOf(said.score);
  const bad = said !== null && verdict === "bad";

  function press(which: "good" | "bad") {
    const next = pressed(said, which);
    setWriting(next !== null && which === "bad");
    mutate(next);
  }

  function send(text: string) {
    if (said === null) return;
    mutate(commented(said, text), {
      onSuccess: () => {
        setWriting(false);
        // What had the focus is gone with the form.
        toggle.current?.focus();
        say(words.sent);
      },
    });
  }

  return (
    <>
      {(["good", "bad"] as const).map((which) => (
        <button
          key={which}
          type="button"
          className={`plain ask-verdict ${which}`}
          aria-label={words[which]}
          aria-pressed={verdict === which}
          title={words[which]}
          onClick={() => press(which)}
        >
          <Thumb />
        </button>
      ))}
      {bad && (
        <button type="button" ref={toggle} className="plain small" onClick={() => setWriting(!writing)}>
          {writing ? words.notNow : said.comment === null ? words.comment : words.changeComment}
        </button>
      )}
      {bad && writing && <CommentForm comment={said.comment ?? ""} onSend={send} />}
      {said?.comment != null && !(bad && writing) && <p className="ask-comment quiet small">“{said.comment}”</p>}
    </>
  );
}

function CommentForm({ comment, onSend }: { comment: string; onSend: (text: string) => void }) {
  const words = t.ask.feedback;
  const id = useId();
  const [text, setText] = useState(comment);
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    // Under the last answer it would open behind the field for the next question.
    form.current?.scrollIntoView({ block: "nearest" });
  }, []);
  function submit(event: FormEvent) {
    event.preventDefault();
    onSend(text);
  }
  return (
    <form ref={form} className="ask-comment stack" onSubmit={submit}>
      <label htmlFor={id}>{words.wrong}</label>
      <textarea
        id={id}
        rows={3}
        maxLength={LONGEST_COMMENT}
        value={text}
        aria-describedby={`${id}-who`}
        onChange={(event) => setText(event.target.value)}
      />
      <p id={`${id}-who`} className="quiet small">
        {words.who}
      </p>
      <div className="row">
        <button type="submit" className="primary" disabled={text.trim() === comment}>
          {words.send}
        </button>
      </div>
    </form>
  );
}

/** Points up; the style sheet turns it. */
function Thumb() {
  return (
    <svg className="ask-thumb" viewBox="0 0 24 24" aria-hidden="true">
      <path d="M4 11h3v9H4z" />
      <path d="M10 11l3.5-7.5c1.7 0 2.6 1.3 2.2 3L14.9 10H19c1.3 0 2.2 1.1 1.9 2.4l-1.3 6c-.2 1-1 1.6-1.9 1.6H10z" />
    </svg>
  );
}
