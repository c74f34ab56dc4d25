import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useEvery } from "../api/every";
import { request } from "../api/http";
import type { Collection, Key, KeyWithSecret, ListedKey } from "../api/types";
import { t } from "../strings";
import { moneyText, unitsOf } from "../ui/money";
import { useNotices } from "../ui/notices";
import { countText, momentText } from "../ui/numbers";
import { SecretDialog } from "../ui/SecretDialog";
import { stateOf } from "./expiry";
import { Confirm } from "./Form";
import { KeyForm } from "./KeyForm";
import { useList } from "./lists";
import { Reach } from "./Reach";
import { RotateForm } from "./RotateForm";
import { RowButton } from "./RowButton";
import { Section } from "./Section";
import { type Column, List } from "./Table";

const WORDS = t.admin.keys;

type Open = { what: "create" } | { what: "edit" | "rotate" | "revoke"; key: Key } | null;

/** The tenant's keys: making, changing and ending them. */
export function KeysSection() {
  const queries = useQueryClient();
  const say = useNotices();
  const [open, setOpen] = useState<Open>(null);
  const [fresh, setFresh] = useState<KeyWithSecret | null>(null);
  const [ended, setEnded] = useState(false);
  const found = useList<ListedKey>(["keys", "list"], "v1/admin/keys", { limit: 200 });
  const collections = useEvery<Collection>("collections", "v1/collections");
  const now = Date.now();
  const items = found.items.filter((key) => ended || ["working", "ending"].includes(stateOf(key, now)));

  async function changed() {
    await queries.invalidateQueries({ queryKey: ["keys"] });
  }
  async function shown(key: KeyWithSecret) {
    setOpen(null);
    setFresh(key);
    await changed();
  }
  async function revoke(key: Key) {
    await request<Key>(`v1/admin/keys/${key.id}`, { method: "DELETE" });
    setOpen(null);
    say(WORDS.revokedNotice(key.name));
    await changed();
  }

  return (
    <Section
      title={t.admin.sections.keys}
      lead={WORDS.lead}
      actions={
        <button type="button" className="primary" onClick={() => setOpen({ what: "create" })}>
          {WORDS.create}
        </button>
      }
    >
      <label className="check">
        <input type="checkbox" checked={ended} onChange={(event) => setEnded(event.target.checked)} />
        {WORDS.showRevoked}
      </label>
      <List
        label={t.admin.sections.keys}
        found={found}
        items={items}
        none={WORDS.none}
        keyOf={(key) => key.id}
        columns={columnsOf(collections, now)}
        actions={(key) =>
          ["working", "ending"].includes(stateOf(key, now)) && (
            <>
              <RowButton of={key.name} onClick={() => setOpen({ what: "edit", key })}>
                {WORDS.edit}
              </RowButton>
              <RowButton of={key.name} onClick={() => setOpen({ what: "rotate", key })}>
                {WORDS.rotate}
              </RowButton>
              <RowButton of={key.name} danger onClick={() => setOpen({ what: "revoke", key })}>
                {WORDS.revoke}
              </RowButton>
            </>
          )
        }
      />
      {open?.what === "create" && (
        <KeyForm
          before={null}
          collections={collections}
          onClose={() => setOpen(null)}
          onDone={(key) => shown(key as KeyWithSecret)}
        />
      )}
      {open?.what === "edit" && (
        <KeyForm
          before={open.key}
          collections={collections}
          onClose={() => setOpen(null)}
          onDone={async () => {
            setOpen(null);
            say(WORDS.edited);
            await changed();
          }}
        />
      )}
      {open?.what === "rotate" && <RotateForm changing={open.key} onClose={() => setOpen(null)} onDone={shown} />}
      {open?.what === "revoke" && (
        <Confirm
          title={WORDS.revokeTitle(open.key.name)}
          text={WORDS.revokeText}
          action={WORDS.revoke}
          onConfirm={() => revoke(open.key)}
          onClose={() => setOpen(null)}
        />
      )}
      {fresh !== null && (
        <SecretDialog title={t.admin.secret.title(fresh.name)} secret={fresh.secret} onClose={() => setFresh(null)} />
      )}
    </Section>
  );
}

function columnsOf(collections: readonly Collection[], now: number): Column<ListedKey>[] {
  return [
    { header: WORDS.name, cell: (key) => <Name of={key} /> },
    { header: WORDS.role, cell: (key) => t.admin.roles[key.role] },
    { header: WORDS.user, cell: (key) => <span title={key.user_id}>{key.user_name}</span> },
    { header: WORDS.reach, cell: (key) => <Reach ids={key.collections} collections={collections} /> },
    { header: WORDS.state, cell: (key) => <State held={key} now={now} /> },
    { header: WORDS.used, cell: (key) => (key.last_used_at === null ? t.admin.never : momentText(key.last_used_at)) },
    { header: WORDS.spent, number: true, cell: (key) => spentText(key) },
  ];
}

function Name({ of: { name, prefix, created_at } }: { of: ListedKey }) {
  return (
    <span title={WORDS.made(momentText(created_at))}>
      {name} <code className="key-begins quiet">{prefix}…</code>
    </span>
  );
}

/** What a key cost since the month began; its tokens where nothing has a price. */
function spentText({ month }: ListedKey): string {
  if (month.cost !== null) return moneyText(unitsOf(month.cost), month.currency);
  const tokens = month.input_tokens + month.output_tokens;
  return tokens === 0 ? "–" : WORDS.tokens(countText(tokens));
}

function State({ held, now }: { held: Key; now: number }) {
  const { previous_expires_at: overlap, rotated_from: before } = held;
  const overlapping = overlap !== null && Date.parse(overlap) > now && before !== null;
  switch (stateOf(held, now)) {
    case "revoked":
      return <span className="badge">{WORDS.revoked(momentText(held.revoked_at ?? ""))}</span>;
    case "expired":
      return <span className="badge">{WORDS.expired(momentText(held.expires_at ?? ""))}</span>;
    default:
      return (
        <>
          <span className="badge good">
            {held.expires_at === null ? WORDS.works : WORDS.until(momentText(held.expires_at))}
          </span>
          {overlapping && <div className="quiet small">{WORDS.overlapping(before, momentText(overlap))}</div>}
        </>
      );
  }
}
