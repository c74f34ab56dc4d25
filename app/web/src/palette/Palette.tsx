/** One field that goes everywhere: documents and conversations by name or words, and what else can be done. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { useLocation } from "wouter";
import { request } from "../api/http";
import type { Conversation, Document, Page } from "../api/types";
import { runsOf } from "../ask/runs";
import { useSession, useSignOut } from "../session/session";
import { t } from "../strings";
import { turnTheme } from "../ui/theme";
import { type Choice, fitting, type Group, moved } from "./choices";
import "./palette.css";

const MOST = 6;
const TYPING_MS = 200;

export default function Palette({ onClose }: { onClose: () => void }) {
  const words = t.palette;
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  const [typed, setTyped] = useState("");
  const [chosen, setChosen] = useState(0);
  const { groups, pending, failed } = useGroups(typed);
  const choices = groups.flatMap((group) => group.choices);
  const at = Math.min(chosen, choices.length - 1);
  const current = choices[at];

  useEffect(() => {
    const shown = dialog.current;
    const before = document.activeElement;
    if (shown !== null && !shown.open) shown.showModal();
    return () => {
      shown?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);

  // biome-ignore lint/correctness/useExhaustiveDependencies: another choice is brought into sight
  useEffect(() => {
    dialog.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [current?.id]);

  function choose(choice: Choice) {
    onClose();
    // Once the dialog has given the focus back.
    window.setTimeout(choice.run);
  }

  function onKeyDown(event: KeyboardEvent) {
    if (event.nativeEvent.isComposing) return;
    if (event.key === "ArrowDown") setChosen(moved(at, 1, choices.length));
    else if (event.key === "ArrowUp") setChosen(moved(at, -1, choices.length));
    else if (event.key === "Enter" && current !== undefined) choose(current);
    else return;
    event.preventDefault();
  }

  return (
    <dialog
      ref={dialog}
      className="palette"
      aria-label={words.open}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === event.currentTarget) onClose();
      }}
      onKeyDown={() => {
        // The keys are the field's; the backdrop has none.
      }}
    >
      <div className="palette-body">
        <input
          type="text"
          role="combobox"
          aria-label={words.label}
          aria-expanded="true"
          aria-controls={id}
          aria-autocomplete="list"
          aria-activedescendant={current === undefined ? undefined : `${id}-${current.id}`}
          autoComplete="off"
          maxLength={200}
          placeholder={words.placeholder}
          value={typed}
          onChange={(event) => {
            setTyped(event.target.value);
            setChosen(0);
          }}
          onKeyDown={onKeyDown}
        />
        <div id={id} role="listbox" aria-label={words.open} className="palette-list" aria-busy={pending}>
          {groups.map(({ name, choices: listed }, place) => (
            // biome-ignore lint/a11y/useSemanticElements: a group of options, of which HTML has none outside of a select
            <div key={name} role="group" aria-labelledby={`${id}-g${place}`}>
              <div id={`${id}-g${place}`} className="palette-group small quiet" role="presentation">
                {name}
              </div>
              {listed.map((choice) => (
                // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the keys and the focus
                // biome-ignore lint/a11y/useFocusableInteractive: the field names the active one
                <div
                  key={choice.id}
                  id={`${id}-${choice.id}`}
                  role="option"
                  aria-selected={choice === current}
                  className="palette-choice"
                  onClick={() => choose(choice)}
                  onMouseMove={() => setChosen(choices.indexOf(choice))}
                >
                  <span dir="auto">{choice.label}</span>
                  {choice.detail !== null && (
                    <span className="small quiet" dir="auto">
                      {choice.detail}
                    </span>
                  )}
                </div>
              ))}
            </div>
          ))}
        </div>
        {failed && <p className="problem small">{words.failed}</p>}
        <p role="status" className={choices.length === 0 ? "quiet" : "visually-hidden"}>
          {pending ? "" : choices.length === 0 ? words.none : words.found(choices.length)}
        </p>
      </div>
    </dialog>
  );
}

function useGroups(typed: string): { groups: Group[]; pending: boolean; failed: boolean } {
  const words = t.palette;
  const q = typed.trim();
  const [asked, setAsked] = useState(q);
  useEffect(() => {
    const timer = window.setTimeout(() => setAsked(q), TYPING_MS);
    return () => window.clearTimeout(timer);
  }, [q]);
  const actions = useActions();
  const [, navigate] = useLocation();
  const documents = useQuery({
    queryKey: ["documents", "palette", asked],
    queryFn: ({ signal }) => request<Page<Document>>("v1/documents", { query: { q: asked, limit: MOST }, signal }),
  });
  const conversations = useQuery({
    queryKey: ["conversations", "palette", asked],
    queryFn: ({ signal }) =>
      request<Page<Conversation>>("v1/conversations", { query: { q: asked, limit: MOST }, signal }),
  });
  // What was found for other words is no choice: Enter would go there.
  const late = asked !== q;
  const groups: Group[] = [
    { name: words.actions, choices: fitting(actions, q) },
    {
      name: words.documents,
      choices: (late ? [] : (documents.data?.data ?? [])).map(({ id, filename }) => ({
        id,
        label: filename,
        detail: null,
        run: () => navigate(`/documents/${encodeURIComponent(id)}`),
      })),
    },
    {
      name: words.conversations,
      choices: (late ? [] : (conversations.data?.data ?? []))
        .filter(({ turns, unanswered }) => turns + unanswered > 0)
        .map(({ id, title, hit }) => ({
          id,
          label: title ?? t.ask.conversations.untitled,
          detail: hit == null || hit.place === "title" ? null : hit.snippet,
          run: () => navigate(`/c/${encodeURIComponent(id)}`),
        })),
    },
  ];
  return {
    groups: groups.filter(({ choices }) => choices.length > 0),
    pending: late || documents.isPending || conversations.isPending,
    failed: documents.isError || conversations.isError,
  };
}

function useActions(): Choice[] {
  const words = t.palette;
  const session = useSession();
  const queries = useQueryClient();
  const signOut = useSignOut();
  const [location, navigate] = useLocation();
  const action = (id: string, label: string, run: () => void): Choice => ({ id: `do-${id}`, label, detail: null, run });
  return [
    action("new", words.newConversation, () => {
      if (location === "/") runsOf(session, queries).forget(null);
      navigate("/");
    }),
    ...(session.role === "reader" ? [] : [action("add", words.addFiles, () => navigate("/documents"))]),
    action("tables", words.tables, () => navigate("/tables")),
    action("usage", words.usage, () => navigate("/usage")),
    ...(session.role === "admin" ? [action("admin", words.admin, () => navigate("/admin"))] : []),
    action("theme", words.theme, turnTheme),
    action("out", words.signOut, () => void signOut()),
  ];
}
