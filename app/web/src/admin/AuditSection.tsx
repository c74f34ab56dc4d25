import { useState } from "react";
import type { AuditEvent } from "../api/types";
import { t } from "../strings";
import { momentText } from "../ui/numbers";
import { linesOf } from "./auditDetail";
import { Field } from "./Form";
import { useList } from "./lists";
import { Section } from "./Section";
import { type Column, List } from "./Table";

const WORDS = t.admin.audit;

/** What administrators did. */
export function AuditSection() {
  const [action, setAction] = useState("");
  const found = useList<AuditEvent>(["audit", action], "v1/admin/audit", { action });
  return (
    <Section title={t.admin.sections.audit} lead={WORDS.lead}>
      <Field label={WORDS.filter}>
        {(input) => (
          <select {...input} className="narrow" value={action} onChange={(event) => setAction(event.target.value)}>
            <option value="">{WORDS.everything}</option>
            {Object.entries(WORDS.actions).map(([name, words]) => (
              <option key={name} value={name}>
                {words}
              </option>
            ))}
          </select>
        )}
      </Field>
      <List
        label={t.admin.sections.audit}
        found={found}
        items={found.items}
        none={WORDS.none}
        keyOf={({ id }) => id}
        columns={COLUMNS}
      />
    </Section>
  );
}

const COLUMNS: Column<AuditEvent>[] = [
  { header: WORDS.at, cell: ({ at }) => momentText(at) },
  { header: WORDS.who, cell: ({ user_id }) => user_id },
  { header: WORDS.what, cell: ({ action }) => WORDS.actions[action] ?? action },
  { header: WORDS.target, cell: ({ target }) => <code>{target}</code> },
  { header: WORDS.detail, cell: ({ detail }) => <Detail detail={detail} /> },
];

/** What changed, a line a member. */
function Detail({ detail }: { detail: AuditEvent["detail"] }) {
  const lines = linesOf(detail);
  if (lines.length === 0) return "–";
  return (
    <ul className="plain-list small">
      {lines.map(({ name, text }) => (
        <li key={name}>
          <span className="quiet">{name}:</span> {text}
        </li>
      ))}
    </ul>
  );
}
