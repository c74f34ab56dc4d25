import { Link } from "wouter";
import { type Column, Table } from "../admin/Table";
import type { ExpensiveBody, ExpensiveQuestion } from "../api/types";
import { t } from "../strings";
import { countText, momentText } from "../ui/numbers";
import { ListPart } from "./ListPart";
import { costText } from "./metrics";
import { type AskedOverview, PATHS, rangeQuery, useOverviewList } from "./queries";

const WORDS = t.overview.expensive;

/** The most expensive questions, each with the reason and what lowers it. */
export function Expensive({ asked }: { asked: AskedOverview }) {
  const range = rangeQuery(asked);
  const found = useOverviewList<ExpensiveBody>(PATHS.expensive, { ...range, limit: 10 });
  return (
    <ListPart name="expensive" title={WORDS.title} lead={WORDS.lead} found={found} path={PATHS.expensive} query={range}>
      {found.data?.data.length === 0 && <p className="quiet">{WORDS.none}</p>}
      {found.data !== undefined && found.data.data.length > 0 && (
        <Table label={WORDS.title} items={found.data.data} keyOf={({ request_id }) => request_id} columns={COLUMNS} />
      )}
    </ListPart>
  );
}

const COLUMNS: Column<ExpensiveQuestion>[] = [
  { header: WORDS.question, cell: (one) => <Question one={one} /> },
  { header: WORDS.cost, number: true, cell: ({ cost }) => costText(cost) },
  {
    header: WORDS.tokens,
    number: true,
    cell: ({ input_tokens, output_tokens }) => countText(input_tokens + output_tokens),
  },
  { header: WORDS.why, cell: ({ why }) => <span className="said">{why}</span> },
  { header: WORDS.lower, cell: ({ how_to_lower }) => <span className="said">{how_to_lower}</span> },
];

function Question({ one }: { one: ExpensiveQuestion }) {
  const { question, conversation_id, user_id, asked_at, request_id } = one;
  return (
    <>
      {question === null || conversation_id === null ? (
        <span className="quiet">
          {WORDS.notKept} <code>{request_id}</code>
        </span>
      ) : (
        <Link className="asked" href={`/c/${encodeURIComponent(conversation_id)}`}>
          {question}
        </Link>
      )}
      <span className="quiet small">
        {user_id}, {momentText(asked_at)}
      </span>
    </>
  );
}
