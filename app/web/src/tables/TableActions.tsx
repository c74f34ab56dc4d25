/** What can be done with a table: going on, its file, and deleting it. */
import { useState } from "react";
import { Confirm } from "../admin/Form";
import type { AnswerTable } from "../api/types";
import { CsvButton } from "../overview/CsvButton";
import { useSession } from "../session/session";
import { ProblemNote } from "../ui/ProblemNote";
import { nextOf } from "./cells";
import { words } from "./strings";
import { deleteTable, nameOf, pathOf, useResumption } from "./tables";

const NO_QUERY = {};

interface TableActionsProps {
  table: AnswerTable;
  onDeleted: () => void;
}

export function TableActions({ table, onDeleted }: TableActionsProps) {
  const { user_id: user } = useSession();
  const [deleting, setDeleting] = useState(false);
  const resumption = useResumption(table.id);
  const next = table.user_id === user ? nextOf(table) : null;

  async function remove() {
    await deleteTable(table.id);
    setDeleting(false);
    onDeleted();
  }

  return (
    <div className="row">
      {next !== null && (
        <button
          type="button"
          className="primary"
          disabled={resumption.isPending}
          onClick={() => resumption.mutate(undefined)}
        >
          {words[next]}
        </button>
      )}
      <CsvButton of={nameOf(table)} path={pathOf(table.id)} query={NO_QUERY} />
      <button type="button" className="danger" aria-haspopup="dialog" onClick={() => setDeleting(true)}>
        {words.remove}
      </button>
      {resumption.isError && <ProblemNote problem={resumption.error} />}
      {deleting && (
        <Confirm
          title={words.removeTitle}
          text={table.state === "running" ? words.removeRunning : words.removeBody}
          action={words.remove}
          onConfirm={remove}
          onClose={() => setDeleting(false)}
        />
      )}
    </div>
  );
}
