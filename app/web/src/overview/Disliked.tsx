import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { type Column, Table } from "../admin/Table";
import { request } from "../api/http";
import type { ListedFeedback, Page } from "../api/types";
import { t } from "../strings";
import { momentText } from "../ui/numbers";
import { ProblemNote } from "../ui/ProblemNote";
import { CsvButton } from "./CsvButton";

const WORDS = t.overview.disliked;
const PATH = "v1/admin/feedback";
const BELOW = { score_below: 0 };

/** The newest answers that people disliked. */
export function Disliked() {
  const found = useQuery({
    queryKey: ["feedback", "newest bad"],
    queryFn: ({ signal }) => request<Page<ListedFeedback>>(PATH, { query: { ...BELOW, limit: 5 }, signal }),
  });
  const items = found.data?.data ?? [];
  return (
    <section className="part" aria-labelledby="overview-disliked" data-part="disliked">
      <div className="row spread">
        <h3 id="overview-disliked" tabIndex={-1}>
          {WORDS.title}
        </h3>
        <span className="row">
          <Link href="/admin/feedback">{WORDS.all}</Link>
          <CsvButton of={WORDS.title} path={PATH} query={BELOW} />
        </span>
      </div>
      <p className="quiet">{WORDS.lead}</p>
      {found.isPending && <p className="quiet">{t.loading}</p>}
      {found.isError && <ProblemNote problem={found.error} onRetry={() => void found.refetch()} />}
      {found.isSuccess && items.length === 0 && <p className="quiet">{WORDS.none}</p>}
      {items.length > 0 && (
        <Table
          label={WORDS.title}
          items={items}
          keyOf={({ request_id, user_id }) => `${request_id} ${user_id}`}
          columns={COLUMNS}
        />
      )}
    </section>
  );
}

const COLUMNS: Column<ListedFeedback>[] = [
  {
    header: WORDS.answer,
    cell: ({ conversation_id, question, request_id }) =>
      conversation_id === null ? (
        <code>{request_id}</code>
      ) : (
        <Link className="asked" href={`/c/${encodeURIComponent(conversation_id)}`}>
          {question}
        </Link>
      ),
  },
  { header: WORDS.said, cell: ({ comment }) => <span className="said">{comment ?? "–"}</span> },
  { header: WORDS.who, cell: ({ user_id }) => user_id },
  { header: WORDS.at, cell: ({ created_at }) => momentText(created_at) },
];
