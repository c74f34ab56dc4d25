import { useState } from "react";
import { t } from "../strings";
import { ProblemNote } from "../ui/ProblemNote";
import { saveCsv } from "../usage/download";

interface CsvButtonProps {
  /** What the file is of, for those who do not see where the button stands. */
  of: string;
  path: string;
  query: Record<string, string | number | undefined>;
}

/** Has the browser save a list of the whole range. */
export function CsvButton({ of, path, query }: CsvButtonProps) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  async function save() {
    setBusy(true);
    setProblem(null);
    try {
      await saveCsv(path, query);
    } catch (error) {
      setProblem(error);
    } finally {
      setBusy(false);
    }
  }
  return (
    <>
      <button type="button" disabled={busy} onClick={() => void save()}>
        {busy ? t.overview.preparing : t.overview.csv}
        <span className="visually-hidden">: {of}</span>
      </button>
      {problem !== null && <ProblemNote problem={problem} />}
    </>
  );
}
