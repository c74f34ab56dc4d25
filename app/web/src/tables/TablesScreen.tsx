/** The tables: a form for a new one, and those there are, newest first. */
import { useId, useState } from "react";
import { Link, useLocation } from "wouter";
import { useHistoryState } from "wouter/use-browser-location";
import type { AnswerTable } from "../api/types";
import { EVERYTHING } from "../ask/scope";
import { useSession } from "../session/session";
import { t } from "../strings";
import { MoreButton } from "../ui/MoreButton";
import { ProblemNote } from "../ui/ProblemNote";
import { doneOf } from "./cells";
import { NewTableForm } from "./NewTableForm";
import { handedOver, nameOf, useTables } from "./tables";
import "../ui/lists.css";
import "./tables.css";
import { words } from "./strings";

export default function TablesScreen() {
  const id = useId();
  const [, navigate] = useLocation();
  const handed = handedOver(useHistoryState());
  const [wanted, setWanted] = useState(handed !== null);
  const found = useTables();
  const tables = found.data?.pages.flatMap(({ data }) => data);
  const open = wanted || tables?.length === 0;
  return (
    <div className="screen stack">
      <div className="row spread">
        <h1>{words.heading}</h1>
        {!open && (
          <button type="button" className="primary" onClick={() => setWanted(true)}>
            {words.new}
          </button>
        )}
      </div>
      <p className="quiet">{words.lead}</p>
      {open && (
        <NewTableForm
          about={handed ?? EVERYTHING}
          takesFocus={wanted}
          onMade={(made) => navigate(`/tables/${made.id}`)}
          onCancel={tables !== undefined && tables.length > 0 ? () => setWanted(false) : null}
        />
      )}
      {found.isError && <ProblemNote problem={found.error} onRetry={() => void found.refetch()} />}
      {found.isPending && <p className="quiet">{t.loading}</p>}
      {tables !== undefined && tables.length > 0 && (
        <section aria-labelledby={id} className="stack">
          <h2 id={id}>{words.listed}</h2>
          <ul className="plain-list tables-list">
            {tables.map((table) => (
              <li key={table.id}>
                <ListedTable table={table} />
              </li>
            ))}
          </ul>
          <MoreButton list={found} />
        </section>
      )}
    </div>
  );
}

function ListedTable({ table }: { table: AnswerTable }) {
  const { user_id: user } = useSession();
  const facts = [
    words.extent(table.questions.length, table.documents),
    words.done(doneOf(table), table.progress.total),
    words.made(table.created_at),
    ...(table.user_id === user ? [] : [t.ask.conversations.of(table.user_id)]),
  ];
  return (
    <>
      <Link href={`/tables/${table.id}`} dir="auto">
        {nameOf(table)}
      </Link>{" "}
      <StateBadge table={table} />
      <span className="quiet small tables-facts">{facts.join(" · ")}</span>
    </>
  );
}

function StateBadge({ table }: { table: AnswerTable }) {
  const tone = table.state === "stopped" ? "badge warn" : "badge";
  return <span className={tone}>{words.states[table.state]}</span>;
}
