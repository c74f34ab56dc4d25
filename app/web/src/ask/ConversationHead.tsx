/** What a conversation is called and who may read it. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import { address, request } from "../api/http";
import type { Conversation, Page } from "../api/types";
import { t } from "../strings";
import { copy } from "../ui/copy";
import { Dialog } from "../ui/Dialog";
import { ProblemNote } from "../ui/ProblemNote";
import { ui } from "../ui/strings";
import { conversationsChanged } from "./acrossTabs";
import { conversationAddress } from "./places";
import "../ui/lists.css";

/** The longest name the server takes. */
const LONGEST = 200;
const LONGEST_FOLDER = 60;

/** For those whose conversation it is. */
export function ConversationHead({ conversation }: { conversation: Conversation }) {
  const words = t.ask.conversations;
  const [open, setOpen] = useState<"name" | "share" | "folder" | null>(null);
  const close = () => setOpen(null);
  const pinning = useChange(conversation);
  return (
    <div className="ask-head">
      {conversation.shared && <span className="badge">{words.shared}</span>}
      <button type="button" className="plain small" onClick={() => setOpen("name")}>
        {words.rename}
      </button>
      <button
        type="button"
        className="plain small"
        disabled={pinning.isPending}
        onClick={() => pinning.mutate({ pinned: !conversation.pinned })}
      >
        {conversation.pinned ? words.unpin : words.pin}
      </button>
      <button type="button" className="plain small" onClick={() => setOpen("folder")}>
        {words.folder}
      </button>
      <button type="button" className="plain small" onClick={() => setOpen("share")}>
        {words.share}
      </button>
      <Exports conversation={conversation} />
      <Dialog title={words.folderTitle} open={open === "folder"} onClose={close}>
        <Filing conversation={conversation} onDone={close} />
      </Dialog>
      <Dialog title={words.renameTitle} open={open === "name"} onClose={close}>
        <Naming conversation={conversation} onDone={close} />
      </Dialog>
      <Dialog title={words.shareTitle} open={open === "share"} onClose={close}>
        <Sharing conversation={conversation} onDone={close} />
      </Dialog>
    </div>
  );
}

/** For those it is shared with. */
export function SharedNote({ conversation }: { conversation: Conversation }) {
  const words = t.ask.conversations;
  return (
    <div className="ask-note">
      {words.sharedBy(conversation.user_name)} <a href="#/">{words.askOwn}</a>
      <div className="row">
        <Exports conversation={conversation} />
      </div>
    </div>
  );
}

function Exports({ conversation }: { conversation: Conversation }) {
  const words = t.ask.conversations;
  return (
    <>
      <a
        className="button plain small"
        href={address(`v1/conversations/${encodeURIComponent(conversation.id)}/export`)}
        title={words.exportTitle}
        download
      >
        {words.export}
      </a>
      <button type="button" className="plain small" onClick={() => window.print()}>
        {words.print}
      </button>
    </>
  );
}

interface DialogProps {
  conversation: Conversation;
  onDone: () => void;
}

function Naming({ conversation, onDone }: DialogProps) {
  const words = t.ask.conversations;
  const id = useId();
  const [title, setTitle] = useState(conversation.title ?? "");
  const change = useChange(conversation, onDone);
  function save(event: FormEvent) {
    event.preventDefault();
    change.mutate({ title: title.trim() });
  }
  return (
    <form onSubmit={save}>
      <div className="field">
        <label htmlFor={id}>{words.name}</label>
        <input id={id} value={title} maxLength={LONGEST} required onChange={(event) => setTitle(event.target.value)} />
      </div>
      {change.isError && <ProblemNote problem={change.error} />}
      <div className="dialog-foot">
        <button type="button" onClick={onDone}>
          {t.cancel}
        </button>
        <button type="submit" className="primary" disabled={change.isPending || title.trim() === ""}>
          {words.save}
        </button>
      </div>
    </form>
  );
}

function Filing({ conversation, onDone }: DialogProps) {
  const words = t.ask.conversations;
  const id = useId();
  const [folder, setFolder] = useState(conversation.folder ?? "");
  const change = useChange(conversation, onDone);
  const known = useFolders();
  function save(event: FormEvent) {
    event.preventDefault();
    change.mutate({ folder: folder.trim() });
  }
  return (
    <form onSubmit={save}>
      <div className="field">
        <label htmlFor={id}>{words.folderName}</label>
        <input
          id={id}
          value={folder}
          maxLength={LONGEST_FOLDER}
          list={`${id}-known`}
          autoComplete="off"
          aria-describedby={`${id}-hint`}
          onChange={(event) => setFolder(event.target.value)}
        />
        <datalist id={`${id}-known`}>
          {known.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <p id={`${id}-hint`} className="quiet small">
          {words.folderHint}
        </p>
      </div>
      {change.isError && <ProblemNote problem={change.error} />}
      <div className="dialog-foot">
        <button type="button" onClick={onDone}>
          {t.cancel}
        </button>
        <button type="submit" className="primary" disabled={change.isPending}>
          {words.save}
        </button>
      </div>
    </form>
  );
}

/** The names of folders in what the list has read. */
function useFolders(): string[] {
  const queries = useQueryClient();
  const lists = queries.getQueriesData<{ pages: Page<Conversation>[] }>({ queryKey: ["conversations", "list"] });
  const listed = lists.flatMap(([, list]) => list?.pages.flatMap(({ data }) => data) ?? []);
  return [...new Set(listed.flatMap(({ folder }) => (folder === null ? [] : [folder])))].sort();
}

function Sharing({ conversation, onDone }: DialogProps) {
  const words = t.ask.conversations;
  const hint = useId();
  const change = useChange(conversation);
  // Said here: a notice would be behind the dialog.
  const [copied, setCopied] = useState<boolean | null>(null);
  // What was just chosen shows at once, in the same turn of the browser's loop; the server's word follows.
  const [chosen, setChosen] = useState<boolean | null>(null);
  const shared = chosen ?? conversation.shared;
  function choose(wanted: boolean) {
    setChosen(wanted);
    change.mutate({ shared: wanted }, { onSettled: () => setChosen(null) });
  }
  const address = conversationAddress(conversation.id);
  return (
    <>
      <label className="ask-check">
        <input
          type="checkbox"
          checked={shared}
          disabled={change.isPending}
          aria-describedby={hint}
          onChange={(event) => choose(event.target.checked)}
        />
        {words.shareLabel}
      </label>
      <p id={hint} className="quiet small">
        {shared ? words.shareOn : words.shareOff}
      </p>
      <input className="ask-address" readOnly value={address} aria-label={words.link} onFocus={selected} />
      <p className="small" role="status">
        {copied === null ? "" : copied ? t.copied : ui.notCopied}
      </p>
      {change.isError && <ProblemNote problem={change.error} />}
      <div className="dialog-foot">
        <button type="button" onClick={onDone}>
          {t.close}
        </button>
        <button type="button" className="primary" onClick={() => void copy(address).then(setCopied)}>
          {words.copyLink}
        </button>
      </div>
    </>
  );
}

function selected(event: { currentTarget: HTMLInputElement }) {
  event.currentTarget.select();
}

function useChange({ id }: Conversation, onDone?: () => void) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: { title?: string; shared?: boolean; pinned?: boolean; folder?: string }) =>
      request<Conversation>(`v1/conversations/${encodeURIComponent(id)}`, { method: "PATCH", body }),
    onSuccess: async () => {
      await conversationsChanged(queries);
      onDone?.();
    },
  });
}
