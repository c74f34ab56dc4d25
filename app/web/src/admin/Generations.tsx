import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { request } from "../api/http";
import type { Generation } from "../api/types";
import { useSession } from "../session/session";
import { t } from "../strings";
import { Meter } from "../ui/Meter";
import { useNotices } from "../ui/notices";
import { countText, momentText } from "../ui/numbers";
import { Confirm } from "./Form";
import { useList } from "./lists";
import { RowButton } from "./RowButton";
import { Section } from "./Section";
import { type Column, List } from "./Table";

const WORDS = t.admin.models;

type Act = "confirm" | "rollback";

/** The indexes there are, one a model: in use, being built, kept, gone. */
export function Generations() {
  const { operator } = useSession();
  const queries = useQueryClient();
  const say = useNotices();
  const [asked, setAsked] = useState<{ act: Act; generation: Generation } | null>(null);
  const found = useList<Generation>(["generations"], "v1/admin/generations", {}, { every: 5000 });
  const kept = found.items.some(({ status }) => status === "previous");
  const building = found.items.some(({ status }) => status === "building" || status === "ready");

  async function act({ act, generation }: { act: Act; generation: Generation }) {
    await request<Generation>(`v1/admin/generations/${generation.id}/${act}`, { method: "POST" });
    setAsked(null);
    say(act === "confirm" ? WORDS.confirmed : WORDS.wentBack);
    await queries.invalidateQueries({ queryKey: ["generations"] });
  }

  return (
    <Section title={WORDS.generations} lead={WORDS.generationsLead}>
      <List
        label={WORDS.generations}
        found={found}
        items={found.items}
        none="–"
        keyOf={({ id }) => String(id)}
        columns={COLUMNS}
        {...(operator && {
          actions: (generation: Generation) =>
            generation.status === "active" &&
            kept && (
              <>
                <RowButton of={String(generation.id)} onClick={() => setAsked({ act: "confirm", generation })}>
                  {WORDS.confirm}
                </RowButton>
                {!building && (
                  <RowButton of={String(generation.id)} onClick={() => setAsked({ act: "rollback", generation })}>
                    {WORDS.back}
                  </RowButton>
                )}
              </>
            ),
        })}
      />
      <p className="quiet small">{WORDS.another}</p>
      {asked !== null && (
        <Confirm
          title={asked.act === "confirm" ? WORDS.confirmTitle : WORDS.backTitle}
          text={asked.act === "confirm" ? WORDS.confirmText : WORDS.backText}
          action={asked.act === "confirm" ? WORDS.confirm : WORDS.back}
          onConfirm={() => act(asked)}
          onClose={() => setAsked(null)}
        />
      )}
    </Section>
  );
}

const COLUMNS: Column<Generation>[] = [
  { header: WORDS.number, cell: ({ id }) => String(id) },
  {
    header: WORDS.model,
    cell: ({ model, dim }) => (
      <>
        {model} <span className="quiet small">{WORDS.dimensions(countText(dim))}</span>
      </>
    ),
  },
  { header: WORDS.state, cell: (generation) => <State generation={generation} /> },
  {
    header: WORDS.since,
    cell: ({ activated_at }) => (activated_at === null ? "–" : momentText(activated_at)),
  },
];

function State({ generation }: { generation: Generation }) {
  const { status, progress, rejected } = generation;
  const words = progress === null ? "" : progressWords(progress.done, progress.total);
  return (
    <>
      <span className={status === "active" ? "badge good" : "badge"}>{WORDS.states[status] ?? status}</span>{" "}
      {rejected && <span className="badge warn">{WORDS.rejected}</span>}
      {progress !== null && (
        <div className="progress" aria-live="polite">
          <Meter
            plain
            share={progress.total === 0 ? 0 : progress.done / progress.total}
            label={WORDS.number}
            text={words}
          />
          <span className="quiet small">{progress.error ?? words}</span>
        </div>
      )}
    </>
  );
}

function progressWords(done: number, total: number): string {
  return total === 0 ? WORDS.counting : WORDS.progress(countText(done), countText(total));
}
