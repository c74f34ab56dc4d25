import { useInfiniteQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import { Link } from "wouter";
import { request } from "../api/http";
import type { DocumentsPage, DocumentUsage } from "../api/types";
import { t } from "../strings";
import { FileName } from "../ui/FileName";
import { MoreButton } from "../ui/MoreButton";
import { moneyText, unitsOf } from "../ui/money";
import { countText } from "../ui/numbers";
import { ProblemNote } from "../ui/ProblemNote";
import type { Span } from "./range";

const WORDS = t.usage.documents;
const ORDERS = ["cost", "context_tokens", "ingest_tokens", "num_cited"] as const;
type Order = (typeof ORDERS)[number];
const ON_A_PAGE = 10;

/** What documents took in a span, the most first. */
export function useDocumentUsage({ start, end }: Span, order: Order) {
  return useInfiniteQuery({
    queryKey: ["usage", "documents", start, end, order],
    queryFn: ({ signal, pageParam }) =>
      request<DocumentsPage>("v1/admin/usage/documents", {
        query: { start_time: start, end_time: end, order_by: order, limit: ON_A_PAGE, page: pageParam },
        signal,
      }),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_page,
    placeholderData: (before) => before,
  });
}

/** The documents that cost most, or were read or cited most. */
export function DocumentsTable({ span }: { span: Span }) {
  const id = useId();
  const [order, setOrder] = useState<Order>("cost");
  const found = useDocumentUsage(span, order);
  const documents = found.data?.pages.flatMap(({ data }) => data) ?? [];
  return (
    <section aria-labelledby={`${id}-title`} data-table="documents">
      <div className="row spread">
        <h3 id={`${id}-title`}>{WORDS.title}</h3>
        <span className="row">
          <label htmlFor={`${id}-order`}>{WORDS.order}</label>
          <select id={`${id}-order`} value={order} onChange={(event) => setOrder(event.target.value as Order)}>
            {ORDERS.map((one) => (
              <option key={one} value={one}>
                {WORDS.orders[one]}
              </option>
            ))}
          </select>
        </span>
      </div>
      {found.isError && <ProblemNote problem={found.error} onRetry={() => void found.refetch()} />}
      {found.isSuccess && documents.length === 0 && <p className="quiet">{WORDS.none}</p>}
      {documents.length > 0 && <Rows documents={documents} />}
      <MoreButton list={found} />
    </section>
  );
}

function Rows({ documents }: { documents: readonly DocumentUsage[] }) {
  const counted = [
    { label: WORDS.ingest, of: (one: DocumentUsage) => one.ingest_tokens },
    { label: WORDS.retrieved, of: (one: DocumentUsage) => one.num_retrieved },
    { label: WORDS.context, of: (one: DocumentUsage) => one.context_tokens },
    { label: WORDS.cited, of: (one: DocumentUsage) => one.num_cited },
  ];
  return (
    <table className="cards-on-phone">
      <thead>
        <tr>
          <th scope="col">{WORDS.name}</th>
          {counted.map(({ label }) => (
            <th scope="col" className="number" key={label}>
              {label}
            </th>
          ))}
          <th scope="col" className="number">
            {WORDS.cost}
          </th>
        </tr>
      </thead>
      <tbody>
        {documents.map((one) => (
          <tr key={one.document_id}>
            <th scope="row" className="name">
              {one.deleted ? (
                <span className="quiet">
                  {t.usage.deleted} <code>{one.document_id}</code>
                </span>
              ) : (
                <Link href={`/documents/${one.document_id}`}>
                  <FileName name={one.name} />
                </Link>
              )}
            </th>
            {counted.map(({ label, of }) => (
              <td className="number" data-label={label} key={label}>
                {countText(of(one))}
              </td>
            ))}
            <td className="number" data-label={WORDS.cost}>
              {one.cost.value === null ? "–" : moneyText(unitsOf(one.cost.value), one.cost.currency)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
