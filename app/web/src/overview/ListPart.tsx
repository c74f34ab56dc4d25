import type { ReactNode } from "react";
import { t } from "../strings";
import { ProblemNote } from "../ui/ProblemNote";
import { CsvButton } from "./CsvButton";

interface ListPartProps {
  /** Its place, for the links to it. */
  name: string;
  title: string;
  lead: string;
  found: { isPending: boolean; isError: boolean; isPlaceholderData: boolean; error: unknown; refetch: () => unknown };
  path: string;
  query: Record<string, string | number | undefined>;
  children: ReactNode;
}

/** A list of the overview: its title, what it is, its file, and what it says while there is nothing to show. */
export function ListPart({ name, title, lead, found, path, query, children }: ListPartProps) {
  const id = `overview-${name}`;
  return (
    <section className="part" aria-labelledby={id} data-part={name} aria-busy={found.isPlaceholderData}>
      <div className="row spread">
        <h3 id={id} tabIndex={-1}>
          {title}
        </h3>
        <CsvButton of={title} path={path} query={query} />
      </div>
      <p className="quiet">{lead}</p>
      {found.isPending && <p className="quiet">{t.loading}</p>}
      {found.isError && <ProblemNote problem={found.error} onRetry={() => void found.refetch()} />}
      {children}
    </section>
  );
}
