/** The conversations there are, the newest first. */
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useId, useState } from "react";
import { Link, useLocation } from "wouter";
import { request } from "../api/http";
import type { Conversation, Page } from "../api/types";
import { TypingField } from "../documents/TypingField";
import { useSession } from "../session/session";
import { t } from "../strings";
import { Dialog } from "../ui/Dialog";
import { MoreButton } from "../ui/MoreButton";
import { useNotices } from "../ui/notices";
import { ProblemNote } from "../ui/ProblemNote";
import { conversationsChanged } from "./acrossTabs";
import { groupsOf } from "./groups";
import type { Runs } from "./runs";

interface ConversationListProps {
  current: string | null;
  runs: Runs;
  onChosen?: () => void;
}

/** One's own, and for administrators apart from them those of the others. */
export function ConversationList({ current, runs, onChosen }: ConversationListProps) {
  const words = t.ask.conversations;
  const session = useSession();
  const [leaving, setLeaving] = useState<Conversation | null>(null);
  const [q, setQ] = useState("");
  const search = useId();
  const [others, setOthers] = useState(false);
  const listed = { q, current, runs, onChosen, onDelete: setLeaving };

  return (
    <nav className="ask-list" aria-label={words.heading}>
      <h2>{words.heading}</h2>
      <Link
        className="button ask-new"
        href="/"
        onClick={() => {
          if (current === null) runs.forget(null);
          onChosen?.();
        }}
      >
        <span aria-hidden="true">+</span> {words.new}
      </Link>
      <label htmlFor={search} className="visually-hidden">
        {words.search}
      </label>
      <TypingField
        id={search}
        type="search"
        autoComplete="off"
        maxLength={200}
        placeholder={words.searchHint}
        value={q}
        onValue={(typed) => setQ(typed.trim())}
      />
      <Listed owner="me" none={words.none} {...listed} />
      {session.role === "admin" && session.collections === null && (
        <details className="ask-others" onToggle={(event) => setOthers(event.currentTarget.open)}>
          <summary>{words.otherPeople}</summary>
          {others && <Listed owner="others" none={words.noOthers} {...listed} />}
        </details>
      )}
      <Dialog title={words.removeTitle} open={leaving !== null} onClose={() => setLeaving(null)}>
        {leaving !== null && (
          <Leaving conversation={leaving} here={leaving.id === current} runs={runs} onDone={() => setLeaving(null)} />
        )}
      </Dialog>
    </nav>
  );
}

interface ListedProps {
  owner: "me" | "others";
  none: string;
  q: string;
  current: string | null;
  runs: Runs;
  onChosen: (() => void) | undefined;
  onDelete: (conversation: Conversation) => void;
}

function Listed({ owner, none, q, current, runs, onChosen, onDelete }: ListedProps) {
  const words = t.ask.conversations;
  const list = useInfiniteQuery({
    queryKey: ["conversations", "list", owner, q],
    queryFn: ({ pageParam, signal }) =>
      request<Page<Conversation>>("v1/conversations", { query: { owner, q, limit: 50, cursor: pageParam }, signal }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
  });
  const found = list.data?.pages.flatMap((page) => page.data) ?? [];
  // One that nothing was kept in, as when its first answer was stopped, is not worth a line.
  const shown = found.filter((one) => one.turns > 0 || one.unanswered > 0 || one.id === current);
  const groups = q === "" ? groupsOf(shown) : [{ name: null, isFolder: false, conversations: shown }];
  return (
    <>
      {list.isError && <ProblemNote problem={list.error} onRetry={() => void list.refetch()} />}
      <p className="quiet small ask-none" role="status">
        {list.isSuccess && shown.length === 0 && (q === "" ? none : words.noneFound)}
      </p>
      {groups.map(({ name, isFolder, conversations }) => (
        <section key={`${isFolder} ${name}`} className="ask-group" aria-label={name ?? words.heading}>
          {name !== null && <h3 dir="auto">{name}</h3>}
          <ul>
            {conversations.map((one) => (
              <Item
                key={one.id}
                conversation={one}
                title={one.title ?? runs.turns(one.id)[0]?.question ?? words.untitled}
                here={one.id === current}
                onChosen={onChosen}
                onDelete={() => onDelete(one)}
              />
            ))}
          </ul>
        </section>
      ))}
      <MoreButton list={list} className="plain" />
    </>
  );
}

interface ItemProps {
  conversation: Conversation;
  title: string;
  here: boolean;
  onChosen: (() => void) | undefined;
  onDelete: () => void;
}

function Item({ conversation, title, here, onChosen, onDelete }: ItemProps) {
  const words = t.ask.conversations;
  const session = useSession();
  const mine = conversation.user_id === session.user_id;
  return (
    <li className={here ? "here" : undefined}>
      <a
        href={`#/c/${encodeURIComponent(conversation.id)}`}
        aria-current={here ? "page" : undefined}
        onClick={onChosen}
      >
        <span className="ask-title">
          {conversation.pinned && (
            <>
              <span aria-hidden="true">★ </span>
              <span className="visually-hidden">{words.pinned}: </span>
            </>
          )}
          {title}
        </span>
        {conversation.hit != null && conversation.hit.place !== "title" && (
          <span className="ask-snippet small" dir="auto">
            {conversation.hit.snippet}
          </span>
        )}
        <span className="quiet small">
          {when(conversation.updated_at)}
          {!mine && ` · ${words.of(conversation.user_name)}`}
        </span>
      </a>
      <button
        type="button"
        className="plain ask-remove"
        aria-label={words.remove(title)}
        title={words.removeYes}
        onClick={onDelete}
      >
        <span aria-hidden="true">✕</span>
      </button>
    </li>
  );
}

interface LeavingProps {
  conversation: Conversation;
  here: boolean;
  runs: Runs;
  onDone: () => void;
}

function Leaving({ conversation, here, runs, onDone }: LeavingProps) {
  const words = t.ask.conversations;
  const say = useNotices();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const removal = useMutation({
    mutationFn: () => request(`v1/conversations/${encodeURIComponent(conversation.id)}`, { method: "DELETE" }),
    onSuccess: () => {
      onDone();
      runs.forget(conversation.id);
      if (here) navigate("/");
      queries.removeQueries({ queryKey: ["conversations", conversation.id] });
      void conversationsChanged(queries, ["conversations", "list"]);
      say(words.removed);
    },
  });
  return (
    <>
      <p className="ask-break">{words.removeBody(conversation.title ?? words.untitled)}</p>
      {removal.isError && <ProblemNote problem={removal.error} />}
      <div className="dialog-foot">
        <button type="button" onClick={onDone}>
          {t.cancel}
        </button>
        <button type="button" className="danger" disabled={removal.isPending} onClick={() => removal.mutate()}>
          {words.removeYes}
        </button>
      </div>
    </>
  );
}

/** The time of a day that is today, the day of any other. */
function when(moment: string): string {
  const date = new Date(moment);
  const today = date.toDateString() === new Date().toDateString();
  const format = today ? { timeStyle: "short" as const } : { dateStyle: "medium" as const };
  return new Intl.DateTimeFormat(undefined, format).format(date);
}
