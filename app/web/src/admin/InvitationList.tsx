import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { request } from "../api/http";
import type { Collection, Invitation, InvitationWithLink } from "../api/types";
import { t } from "../strings";
import { useNotices } from "../ui/notices";
import { momentText } from "../ui/numbers";
import { SecretDialog } from "../ui/SecretDialog";
import { Confirm } from "./Form";
import { useList } from "./lists";
import { Reach } from "./Reach";
import { RowButton } from "./RowButton";
import { Section } from "./Section";
import { type Column, List } from "./Table";

const WORDS = t.admin.invitations;

/** The links that still let somebody in. */
export function InvitationList({ collections }: { collections: readonly Collection[] }) {
  const queries = useQueryClient();
  const say = useNotices();
  const [revoking, setRevoking] = useState<Invitation | null>(null);
  const found = useList<Invitation>(["invitations"], "v1/admin/invitations");

  async function revoke(one: Invitation) {
    await request<Invitation>(`v1/admin/invitations/${one.id}`, { method: "DELETE" });
    setRevoking(null);
    say(WORDS.revoked(one.name));
    await queries.invalidateQueries({ queryKey: ["invitations"] });
  }

  return (
    <Section title={WORDS.title} lead={WORDS.lead}>
      <List
        label={WORDS.title}
        found={found}
        items={found.items}
        none={WORDS.none}
        keyOf={({ id }) => id}
        columns={columnsOf(collections)}
        actions={(one) => (
          <RowButton of={one.name} danger onClick={() => setRevoking(one)}>
            {WORDS.revoke}
          </RowButton>
        )}
      />
      {revoking !== null && (
        <Confirm
          title={WORDS.revokeTitle(revoking.name)}
          text={WORDS.revokeText}
          action={WORDS.revoke}
          onConfirm={() => revoke(revoking)}
          onClose={() => setRevoking(null)}
        />
      )}
    </Section>
  );
}

function columnsOf(collections: readonly Collection[]): Column<Invitation>[] {
  return [
    { header: WORDS.name, cell: (one) => one.name },
    { header: WORDS.kind, cell: (one) => WORDS.kinds[one.kind] },
    { header: WORDS.role, cell: (one) => t.admin.roles[one.role] },
    { header: WORDS.reach, cell: (one) => <Reach ids={one.collections} collections={collections} /> },
    { header: WORDS.mail, cell: (one) => <Mail of={one} /> },
    { header: WORDS.by, cell: (one) => one.invited_by_name },
    { header: WORDS.expires, cell: (one) => momentText(one.expires_at) },
  ];
}

function Mail({ of: one }: { of: Invitation }) {
  const words = WORDS.mails[one.mail];
  return (
    <>
      {one.mail === "failed" ? <span className="badge bad">{words}</span> : words}
      {one.email !== null && <div className="quiet small">{one.email}</div>}
    </>
  );
}

/** The link that was made, which is shown this once. */
export function LinkDialog({ made, onClose }: { made: InvitationWithLink; onClose: () => void }) {
  return (
    <SecretDialog
      title={WORDS.linkTitle(made.name)}
      label={WORDS.link}
      secret={made.link}
      warning={WORDS.linkWarning(momentText(made.expires_at))}
      onClose={onClose}
    >
      {made.mail !== "off" && <p>{WORDS.mailed[made.mail]}</p>}
    </SecretDialog>
  );
}
