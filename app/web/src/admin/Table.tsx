import type { ReactNode } from "react";
import { t } from "../strings";
import { MoreButton } from "../ui/MoreButton";
import { ProblemNote } from "../ui/ProblemNote";

export interface Column<Item> {
  header: string;
  cell: (item: Item) => ReactNode;
  number?: boolean;
}

interface TableProps<Item> {
  label: string;
  items: readonly Item[];
  keyOf: (item: Item) => string;
  /** The first names the row. */
  columns: readonly Column<Item>[];
  actions?: (item: Item) => ReactNode;
}

/** Things in rows; on a phone each is a card. */
export function Table<Item>({ label, items, keyOf, columns, actions }: TableProps<Item>) {
  const [name, ...rest] = columns;
  return (
    <table className="cards-on-phone">
      <caption className="visually-hidden">{label}</caption>
      <thead>
        <tr>
          {columns.map(({ header, number }) => (
            <th scope="col" className={number ? "number" : undefined} key={header}>
              {header}
            </th>
          ))}
          {actions !== undefined && (
            <th scope="col">
              <span className="visually-hidden">{t.admin.actions}</span>
            </th>
          )}
        </tr>
      </thead>
      <tbody>
        {items.map((item) => (
          <tr key={keyOf(item)}>
            {name !== undefined && (
              <th scope="row" className="name">
                {name.cell(item)}
              </th>
            )}
            {rest.map(({ header, cell, number }) => (
              <td data-label={header} className={number ? "number" : undefined} key={header}>
                <span>{cell(item)}</span>
              </td>
            ))}
            {actions !== undefined && (
              <td className="actions">
                <div className="row">{actions(item)}</div>
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface ListProps<Item> extends TableProps<Item> {
  found: {
    isPending: boolean;
    isError: boolean;
    error: unknown;
    hasNextPage: boolean;
    isFetchingNextPage: boolean;
    refetch: () => unknown;
    fetchNextPage: () => unknown;
  };
  none: string;
}

/** A list of the server's as a table, with what it says while there is nothing to show. */
export function List<Item>({ found, none, ...table }: ListProps<Item>) {
  if (found.isPending) return <p className="quiet">{t.loading}</p>;
  if (found.isError) return <ProblemNote problem={found.error} onRetry={() => void found.refetch()} />;
  return (
    <>
      {table.items.length === 0 ? <p className="quiet">{none}</p> : <Table {...table} />}
      <MoreButton list={found} />
    </>
  );
}
