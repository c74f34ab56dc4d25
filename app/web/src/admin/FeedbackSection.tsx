import { useState } from "react";
import type { ListedFeedback } from "../api/types";
import { CsvButton } from "../overview/CsvButton";
import { t } from "../strings";
import { momentText } from "../ui/numbers";
import { verdictOf } from "../ui/verdict";
import { Field } from "./Form";
import { useList } from "./lists";
import { Section } from "./Section";
import { type Column, List } from "./Table";

const WORDS = t.admin.feedback;
const PATH = "v1/admin/feedback";
const BADGES = { good: "badge good", bad: "badge bad", neutral: "badge" };

/** What people said of answers. */
export function FeedbackSection() {
  const [onlyBad, setOnlyBad] = useState(false);
  const below = onlyBad ? 0 : null;
  const found = useList<ListedFeedback>(["feedback", below], PATH, { score_below: below });
  return (
    <Section
      title={t.admin.sections.feedback}
      lead={WORDS.lead}
      actions={<CsvButton of={t.admin.sections.feedback} path={PATH} query={onlyBad ? { score_below: 0 } : {}} />}
    >
      <Field label={WORDS.filter}>
        {(input) => (
          <select
            {...input}
            className="narrow"
            value={onlyBad ? "bad" : ""}
            onChange={(event) => setOnlyBad(event.target.value === "bad")}
          >
            <option value="">{WORDS.everything}</option>
            <option value="bad">{WORDS.onlyBad}</option>
          </select>
        )}
      </Field>
      <List
        label={t.admin.sections.feedback}
        found={found}
        items={found.items}
        none={WORDS.none}
        keyOf={({ request_id, user_id }) => `${request_id} ${user_id}`}
        columns={COLUMNS}
      />
    </Section>
  );
}

const COLUMNS: Column<ListedFeedback>[] = [
  { header: WORDS.at, cell: ({ created_at }) => momentText(created_at) },
  { header: WORDS.who, cell: ({ user_id, user_name }) => <span title={user_id}>{user_name}</span> },
  { header: WORDS.verdict, cell: ({ score }) => <Badge score={score} /> },
  { header: WORDS.comment, cell: ({ comment }) => (comment === null ? "–" : <span className="said">{comment}</span>) },
  { header: WORDS.answer, cell: (said) => <Answer said={said} /> },
];

function Badge({ score }: { score: number }) {
  const verdict = verdictOf(score);
  return <span className={BADGES[verdict]}>{WORDS.verdicts[verdict]}</span>;
}

/** A link to the conversation, or the request's id where the answer is in none. */
function Answer({ said }: { said: ListedFeedback }) {
  if (said.conversation_id === null) return <code>{said.request_id}</code>;
  return (
    <a className="asked" href={`#/c/${encodeURIComponent(said.conversation_id)}`}>
      {said.question}
    </a>
  );
}
