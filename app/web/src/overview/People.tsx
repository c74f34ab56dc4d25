import { useList } from "../admin/lists";
import { type Column, Table } from "../admin/Table";
import type { Budget, OverviewPerson, PeopleBody } from "../api/types";
import { t } from "../strings";
import { BudgetMeter } from "../ui/BudgetMeter";
import { moneyText, unitsOf } from "../ui/money";
import { countText, percentText } from "../ui/numbers";
import { ListPart } from "./ListPart";
import { costText } from "./metrics";
import { type AskedOverview, PATHS, rangeQuery, useOverviewList } from "./queries";

const WORDS = t.overview.people;

/** Who used most of the budgets, and on what. */
export function People({ asked }: { asked: AskedOverview }) {
  const query = rangeQuery(asked);
  const found = useOverviewList<PeopleBody>(PATHS.people, query);
  const budgets = useList<Budget>(["budgets", "list"], "v1/admin/budgets");
  return (
    <ListPart name="people" title={WORDS.title} lead={WORDS.lead} found={found} path={PATHS.people} query={query}>
      {found.data?.data.length === 0 && <p className="quiet">{WORDS.none}</p>}
      {found.data !== undefined && found.data.data.length > 0 && (
        <Table label={WORDS.title} items={found.data.data} keyOf={({ user_id }) => user_id} columns={COLUMNS} />
      )}
      {budgets.items.length > 0 && (
        <>
          <h4>{WORDS.budgets}</h4>
          <ul className="plain-list budgets">
            {budgets.items.map((budget) => (
              <li key={budget.id} className="card">
                <BudgetMeter budget={budget} />
              </li>
            ))}
          </ul>
        </>
      )}
      {budgets.isSuccess && budgets.items.length === 0 && <p className="quiet small">{WORDS.noBudget}</p>}
    </ListPart>
  );
}

const COLUMNS: Column<OverviewPerson>[] = [
  { header: WORDS.who, cell: ({ name, user_id }) => (name === null ? user_id : `${name} (${user_id})`) },
  { header: WORDS.questions, number: true, cell: ({ num_questions }) => countText(num_questions) },
  {
    header: WORDS.tokens,
    number: true,
    cell: ({ input_tokens, output_tokens }) => countText(input_tokens + output_tokens),
  },
  { header: WORDS.cost, number: true, cell: ({ cost }) => costText(cost) },
  { header: WORDS.share, number: true, cell: ({ share }) => (share === null ? "–" : percentText(share)) },
  { header: WORDS.on, cell: (person) => onWhat(person) },
];

/** What somebody's use was for, in words. */
function onWhat(person: OverviewPerson): string {
  const { cost, answers_cost, documents_cost, answers_tokens, documents_tokens, collection_name } = person;
  const amount = (money: string | null, tokens: number) =>
    money === null ? WORDS.tokenCount(countText(tokens)) : moneyText(unitsOf(money), cost.currency);
  return [
    answers_tokens > 0 ? WORDS.answers(amount(answers_cost, answers_tokens)) : "",
    documents_tokens > 0 ? WORDS.documents(amount(documents_cost, documents_tokens)) : "",
    collection_name === null ? "" : WORDS.mostly(collection_name),
  ]
    .filter((part) => part !== "")
    .join(", ");
}
