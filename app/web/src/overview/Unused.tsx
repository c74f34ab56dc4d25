import { useInfiniteQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import { Link } from "wouter";
import { type Column, Table } from "../admin/Table";
import { request } from "../api/http";
import type { UnusedBody, UnusedDocument } from "../api/types";
import { sizeWords } from "../documents/words";
import { t } from "../strings";
import { FileName } from "../ui/FileName";
import { MoreButton } from "../ui/MoreButton";
import { countText, momentText } from "../ui/numbers";
import { ListPart } from "./ListPart";
import { PATHS } from "./queries";

const WORDS = t.overview.unused;
const DAYS = { never: null, month: 30, quarter: 90 } as const;
type Since = keyof typeof DAYS;
const ON_A_PAGE = 20;

/** Documents that no answer cites. */
export function Unused({ now }: { now: number }) {
  const id = useId();
  const [since, setSince] = useState<Since>("never");
  const days = DAYS[since];
  const query = { since: days === null ? undefined : now - days * 86_400 };
  const found = useInfiniteQuery({
    queryKey: ["overview", PATHS.unused, query],
    queryFn: ({ signal, pageParam }) =>
      request<UnusedBody>(PATHS.unused, { query: { ...query, limit: ON_A_PAGE, page: pageParam }, signal }),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_page,
    placeholderData: (before) => before,
  });
  const documents = found.data?.pages.flatMap(({ data }) => data) ?? [];
  return (
    <ListPart name="unused" title={WORDS.title} lead={WORDS.lead} found={found} path={PATHS.unused} query={query}>
      <span className="row">
        <label htmlFor={id}>{WORDS.show}</label>
        <select id={id} value={since} onChange={(event) => setSince(event.target.value as Since)}>
          {(Object.keys(DAYS) as Since[]).map((one) => (
            <option key={one} value={one}>
              {WORDS[one]}
            </option>
          ))}
        </select>
      </span>
      {found.isSuccess && documents.length === 0 && <p className="quiet">{WORDS.none}</p>}
      {documents.length > 0 && (
        <Table label={WORDS.title} items={documents} keyOf={({ document_id }) => document_id} columns={COLUMNS} />
      )}
      <MoreButton list={found} />
    </ListPart>
  );
}

const COLUMNS: Column<UnusedDocument>[] = [
  {
    header: WORDS.name,
    cell: ({ document_id, name }) => (
      <Link href={`/documents/${document_id}`}>
        <FileName name={name} />
      </Link>
    ),
  },
  { header: WORDS.size, number: true, cell: ({ bytes }) => sizeWords(bytes) },
  { header: WORDS.age, number: true, cell: ({ age_days }) => WORDS.days(countText(age_days), age_days) },
  { header: WORDS.embedded, number: true, cell: ({ embedding_tokens }) => countText(embedding_tokens) },
  {
    header: WORDS.last,
    cell: ({ last_cited_at }) => (last_cited_at === null ? WORDS.neverCited : momentText(last_cited_at)),
  },
];
