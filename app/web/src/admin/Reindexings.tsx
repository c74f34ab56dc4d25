import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { request } from "../api/http";
import type { Collection, Reindexing } from "../api/types";
import { t } from "../strings";
import { Meter } from "../ui/Meter";
import { useNotices } from "../ui/notices";
import { countText } from "../ui/numbers";
import { wordsOf } from "../ui/ProblemNote";
import { Confirm } from "./Form";
import { useList } from "./lists";
import { RowButton } from "./RowButton";
import { useBegun, useReindexing } from "./reindexings";
import { Section } from "./Section";
import { List } from "./Table";

const WORDS = t.admin.models;

/** Reading all documents of a collection again, and how far that is. */
export function Reindexings() {
  const queries = useQueryClient();
  const [asked, setAsked] = useState<Collection | null>(null);
  const [begun, add] = useBegun();
  const found = useList<Collection>(["collections", "list"], "v1/collections");

  async function begin(collection: Collection) {
    const job = await request<Reindexing>(`v1/collections/${collection.id}/reindex`, { method: "POST" });
    queries.setQueryData(["jobs", job.id], job);
    add(collection.id, job.id);
    setAsked(null);
  }

  return (
    <Section title={WORDS.reindex} lead={WORDS.reindexLead}>
      <List
        label={WORDS.reindex}
        found={found}
        items={found.items}
        none={WORDS.noCollections}
        keyOf={({ id }) => id}
        columns={[
          { header: WORDS.collection, cell: ({ name }) => name },
          { header: WORDS.documents, number: true, cell: ({ documents }) => countText(documents) },
          { header: WORDS.state, cell: ({ id }) => <Progress job={begun[id]} /> },
        ]}
        actions={(collection) => (
          <RowButton of={collection.name} disabled={collection.documents === 0} onClick={() => setAsked(collection)}>
            {WORDS.begin}
          </RowButton>
        )}
      />
      {asked !== null && (
        <Confirm
          title={WORDS.beginTitle(asked.name)}
          text={WORDS.beginText(countText(asked.documents))}
          action={WORDS.begin}
          onConfirm={() => begin(asked)}
          onClose={() => setAsked(null)}
        />
      )}
    </Section>
  );
}

function Progress({ job }: { job: string | undefined }) {
  const queries = useQueryClient();
  const say = useNotices();
  const { data } = useReindexing(job);
  if (job === undefined || data === undefined || data === null) return "–";
  const { documents, documents_done: done, documents_failed: failed, documents_cancelled: left } = data;
  const running = data.finished_at === null;
  const words = [
    running ? WORDS.running(countText(done), countText(documents)) : WORDS.finished(countText(done)),
    ...(failed > 0 ? [WORDS.failed(countText(failed))] : []),
    ...(left > 0 ? [WORDS.cancelled(countText(left))] : []),
  ].join(", ");
  function stop() {
    request<Reindexing>(`v1/jobs/${job}/cancel`, { method: "POST" })
      .catch((error: unknown) => say(wordsOf(error)))
      .finally(() => queries.invalidateQueries({ queryKey: ["jobs", job] }));
  }
  return (
    <div className="progress" aria-live="polite">
      {running && (
        <Meter
          plain
          share={documents === 0 ? 0 : (done + failed + left) / documents}
          label={WORDS.reindex}
          text={words}
        />
      )}
      <span className={failed > 0 ? "badge warn" : running ? "quiet small" : "badge good"}>{words}</span>
      {running && (
        <button type="button" onClick={stop}>
          {WORDS.stop}
        </button>
      )}
    </div>
  );
}
