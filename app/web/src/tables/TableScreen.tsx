/** One table: how far it is, what it cost, what can be done with it, and its rows. */
import { useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useId, useState } from "react";
import { Link, useLocation } from "wouter";
import { Problem } from "../api/http";
import type { AnswerTablePage } from "../api/types";
import { useMedia, WIDE } from "../ask/media";
import type { Passage } from "../ask/places";
import { t } from "../strings";
import { MoreButton } from "../ui/MoreButton";
import { useNotices } from "../ui/notices";
import { ProblemNote } from "../ui/ProblemNote";
import { AnswerGrid } from "./AnswerGrid";
import { TableActions } from "./TableActions";
import { TableProgress } from "./TableProgress";
import { forgetTable, nameOf, useAnswerTable, useTableRows } from "./tables";
import "./tables.css";
import { words } from "./strings";

const PassagePanel = lazy(() => import("../viewer/PassagePanel"));

export default function TableScreen({ table: id }: { table: string }) {
  const wide = useMedia(WIDE);
  const found = useAnswerTable(id);
  const [looked, setLooking] = useState<Passage | null>(null);
  const looking = wide ? looked : null;
  const missing = found.error instanceof Problem && found.error.status === 404;
  return (
    <div className={looking === null ? "table-room" : "table-room looking"}>
      <div className="screen table-screen stack">
        <p className="small">
          <Link href="/tables">← {words.all}</Link>
        </p>
        {missing && <p>{words.missing}</p>}
        {found.isError && !missing && <ProblemNote problem={found.error} onRetry={() => void found.refetch()} />}
        {found.isPending && <p className="quiet">{t.loading}</p>}
        {found.data !== undefined && !missing && (
          <Filled table={found.data} onOpen={wide ? (passage) => setLooking(passage) : null} />
        )}
      </div>
      {looking !== null && (
        <div className="table-passage">
          <Suspense fallback={<p className="centred quiet">{t.loading}</p>}>
            <PassagePanel passage={looking} onClose={() => setLooking(null)} />
          </Suspense>
        </div>
      )}
    </div>
  );
}

interface FilledProps {
  table: AnswerTablePage;
  onOpen: ((passage: Passage) => void) | null;
}

function Filled({ table, onOpen }: FilledProps) {
  const heading = useId();
  const say = useNotices();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const rows = useTableRows(table.id);

  function leave() {
    say(words.removed);
    navigate("/tables");
    forgetTable(queries, table.id);
  }

  return (
    <>
      <h1 id={heading} dir="auto">
        {nameOf(table)}
      </h1>
      <TableProgress table={table} />
      <TableActions table={table} onDeleted={leave} />
      {rows.isError && <ProblemNote problem={rows.error} onRetry={() => void rows.refetch()} />}
      {rows.isPending && <p className="quiet">{t.loading}</p>}
      {rows.data !== undefined && (
        <AnswerGrid
          questions={table.questions}
          rows={rows.data.pages.flatMap((page) => page.rows.data)}
          name={nameOf(table)}
          onOpen={onOpen}
        />
      )}
      <MoreButton list={rows} />
    </>
  );
}
