/** A document's versions, each of which can still be read. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { address } from "../api/http";
import type { Document } from "../api/types";
import { t } from "../strings";
import { ProblemNote } from "../ui/ProblemNote";
import { addressOf } from "../viewer/place";
import { Changes } from "./Changes";
import { listVersions } from "./server";
import { fullTime, sizeWords } from "./words";

export function Versions({ document }: { document: Document }) {
  const words = t.documents.versions;
  const { id } = document;
  const [compared, setCompared] = useState<number | null>(null);
  const list = useQuery({
    queryKey: ["documents", "versions", id, document.version],
    queryFn: ({ signal }) => listVersions(id, signal),
    enabled: document.version > 1,
  });
  if (document.version === 1) return null;
  return (
    <section>
      <h3>{words.title}</h3>
      {list.isError && <ProblemNote problem={list.error} onRetry={() => void list.refetch()} />}
      <ul className="versions">
        {(list.data?.data ?? []).map(({ version, live, filename, bytes, created_at: made, indexed_at: indexed }) => (
          <li key={version}>
            <span>
              <strong>{t.documents.list.version(version)}</strong>{" "}
              {live && <span className="badge good">{words.live}</span>}
              {indexed === null && <span className="badge">{words.notReady}</span>}
              <br />
              <span className="quiet small">
                {filename} · {sizeWords(bytes)} · {fullTime(made)}
              </span>
            </span>
            <span className="row">
              {indexed !== null && !live && (
                <button
                  type="button"
                  aria-expanded={compared === version}
                  aria-label={words.compareVersion(version)}
                  onClick={() => setCompared(compared === version ? null : version)}
                >
                  {words.compare}
                </button>
              )}
              {indexed !== null && (
                <a
                  className="button"
                  href={addressOf({ document: id, version, span: null, marks: [], page: null })}
                  aria-label={words.openVersion(version)}
                >
                  {words.open}
                </a>
              )}
              <a
                className="button"
                href={address(`v1/documents/${id}/file`, { version })}
                download
                aria-label={words.downloadVersion(version)}
              >
                {words.download}
              </a>
            </span>
            {compared === version && <Changes document={id} version={version} live={document.live_version} />}
          </li>
        ))}
      </ul>
    </section>
  );
}
