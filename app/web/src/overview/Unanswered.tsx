import { useId, useState } from "react";
import { Link } from "wouter";
import { type Column, Table } from "../admin/Table";
import type { UnansweredBody, UnansweredTopic } from "../api/types";
import { t } from "../strings";
import { FileName } from "../ui/FileName";
import { countText, momentText } from "../ui/numbers";
import { ListPart } from "./ListPart";
import { type AskedOverview, PATHS, rangeQuery, useOverviewList } from "./queries";

const WORDS = t.overview.unanswered;
const RESULTS = { "": WORDS.both, unsure: WORDS.unsure, refused: WORDS.refused } as const;

/** Topics that the documents did not answer, with the documents that come nearest. */
export function Unanswered({ asked }: { asked: AskedOverview }) {
  const id = useId();
  const [result, setResult] = useState<keyof typeof RESULTS>("");
  const query = { ...rangeQuery(asked), result: result === "" ? undefined : result };
  const found = useOverviewList<UnansweredBody>(PATHS.unanswered, query);
  return (
    <ListPart
      name="unanswered"
      title={WORDS.title}
      lead={WORDS.lead}
      found={found}
      path={PATHS.unanswered}
      query={query}
    >
      <span className="row">
        <label htmlFor={id}>{WORDS.show}</label>
        <select id={id} value={result} onChange={(event) => setResult(event.target.value as keyof typeof RESULTS)}>
          {Object.entries(RESULTS).map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      </span>
      {found.data !== undefined && <Topics body={found.data} />}
    </ListPart>
  );
}

function Topics({ body }: { body: UnansweredBody }) {
  const left = body.num_topics - body.data.length;
  return (
    <>
      {body.data.length === 0 ? (
        <p className="quiet">{WORDS.none}</p>
      ) : (
        <Table label={WORDS.title} items={body.data} keyOf={keyOf} columns={COLUMNS} />
      )}
      {left > 0 && <p className="quiet small">{WORDS.moreTopics(countText(left))}</p>}
      {body.num_without_text > 0 && (
        <p className="quiet small">{WORDS.withoutText(countText(body.num_without_text))}</p>
      )}
      {body.num_not_read > 0 && <p className="quiet small">{WORDS.notRead(countText(body.num_not_read))}</p>}
    </>
  );
}

const keyOf = ({ examples, words }: UnansweredTopic) => `${words.join(" ")} ${examples[0]?.request_id ?? ""}`;

const COLUMNS: Column<UnansweredTopic>[] = [
  {
    header: WORDS.topic,
    cell: ({ words, examples }) => <span className="asked">{words.join(", ") || examples[0]?.question}</span>,
  },
  {
    header: WORDS.asked,
    number: true,
    cell: ({ num_questions, num_unsure, num_refused }) => (
      <>
        {countText(num_questions)}
        <br />
        <span className="quiet small">{WORDS.counts(countText(num_unsure), countText(num_refused))}</span>
      </>
    ),
  },
  {
    header: WORDS.examples,
    cell: ({ examples }) => (
      <ul className="plain-list">
        {examples.map(({ request_id, conversation_id, question }) => (
          <li key={request_id}>
            <Link className="asked" href={`/c/${encodeURIComponent(conversation_id)}`}>
              {question}
            </Link>
          </li>
        ))}
      </ul>
    ),
  },
  { header: WORDS.nearest, cell: ({ nearest }) => <Nearest nearest={nearest} /> },
  { header: WORDS.last, cell: ({ last_asked_at }) => momentText(last_asked_at) },
];

function Nearest({ nearest }: Pick<UnansweredTopic, "nearest">) {
  if (nearest === null) return <span className="quiet">{WORDS.notSearched}</span>;
  if (nearest.length === 0) return <span className="quiet">{WORDS.nothingNear}</span>;
  return (
    <ul className="plain-list">
      {nearest.map(({ document_id, name, heading, page }) => (
        <li key={document_id}>
          <Link href={`/documents/${document_id}`}>
            <FileName name={name} />
          </Link>
          {(heading !== "" || page !== null) && (
            <span className="quiet small">
              {" "}
              {[heading, page === null ? "" : WORDS.page(page)].filter((part) => part !== "").join(", ")}
            </span>
          )}
        </li>
      ))}
    </ul>
  );
}
