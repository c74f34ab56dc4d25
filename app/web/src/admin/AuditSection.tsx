import { useState } from "react";
import { useEvery } from "../api/every";
import type { AuditEvent, Collection } from "../api/types";
import { CsvButton } from "../overview/CsvButton";
import { t } from "../strings";
import { momentText } from "../ui/numbers";
import { linesOf, withNames } from "./auditDetail";
import { sentenceOf } from "./auditSentence";
import { Field } from "./Form";
import { useList } from "./lists";
import { Section } from "./Section";
import { type Column, List } from "./Table";

const WORDS = t.admin.audit;
const PATH = "v1/admin/audit";

/** What administrators did. */
export function AuditSection() {
  const [action, setAction] = useState("");
  const collections = useEvery<Collection>("collections", "v1/collections");
  const names = new Map(collections.map(({ id, name }) => [id, name]));
  const found = useList<AuditEvent>(["audit", action], PATH, { action });
  return (
    <Section
      title={t.admin.sections.audit}
      lead={WORDS.lead}
      actions={<CsvButton of={t.admin.sections.audit} path={PATH} query={action === "" ? {} : { action }} />}
    >
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
        columns={columnsOf(names)}
      />
    </Section>
  );
}

function columnsOf(names: ReadonlyMap<string, string>): Column<AuditEvent>[] {
  return [
    { header: WORDS.at, cell: ({ at }) => momentText(at) },
    {
      header: WORDS.what,
      cell: (act) => <span title={`${act.user_id}: ${act.action} ${act.target}`}>{sentenceOf(act)}</span>,
    },
    { header: WORDS.detail, cell: ({ detail }) => <Detail detail={withNames(detail, names)} /> },
  ];
}

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
