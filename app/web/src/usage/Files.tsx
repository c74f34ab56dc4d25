import { useState } from "react";
import { t } from "../strings";
import { ProblemNote } from "../ui/ProblemNote";
import { saveCsv } from "./download";
import { type Asked, REPORTS, type Report, reportQuery } from "./query";

const WORDS = t.usage.files;
const NAMES: readonly Report[] = ["all", "completions", "embeddings", "rerank", "judge", "costs"];

/** The reports as files: each the same query as its chart. */
export function Files({ asked }: { asked: Asked }) {
  const [busy, setBusy] = useState<string | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const { start, end } = asked.span;
  const files = [
    ...NAMES.map((name) => ({ name, path: REPORTS[name], query: reportQuery(name, asked) })),
    { name: "documents" as const, path: "v1/admin/usage/documents", query: { start_time: start, end_time: end } },
    {
      name: "events" as const,
      path: "v1/admin/usage/events",
      query: { start_time: start, end_time: end, tz: asked.zone },
    },
  ];
  async function save({ name, path, query }: (typeof files)[number]) {
    setBusy(name);
    setProblem(null);
    try {
      await saveCsv(path, query);
    } catch (error) {
      setProblem(error);
    } finally {
      setBusy(null);
    }
  }
  return (
    <section aria-labelledby="files">
      <h3 id="files">{WORDS.title}</h3>
      <p className="quiet">{WORDS.lead}</p>
      <div className="row">
        {files.map((file) => (
          <button type="button" key={file.name} disabled={busy !== null} onClick={() => void save(file)}>
            {busy === file.name ? WORDS.preparing : WORDS[file.name]}
          </button>
        ))}
      </div>
      {problem !== null && <ProblemNote problem={problem} />}
    </section>
  );
}
