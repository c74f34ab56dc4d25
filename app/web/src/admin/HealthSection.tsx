import { useMutation, useQuery } from "@tanstack/react-query";
import { address, problemOf, request } from "../api/http";
import type { Findings, Readiness } from "../api/types";
import { useSession } from "../session/session";
import { t } from "../strings";
import { countText } from "../ui/numbers";
import { ProblemNote } from "../ui/ProblemNote";
import { Section } from "./Section";
import { type Station, stationsOf } from "./stations";
import { Table } from "./Table";

const WORDS = t.admin.health;

/** Whether everything works, station by station, and whether files, database and index agree. */
export function HealthSection() {
  const { operator } = useSession();
  const ready = useQuery({
    queryKey: ["health", "ready"],
    queryFn: ({ signal }) => readiness(signal),
    refetchInterval: ({ state }) => (state.data === null ? false : 5000),
  });
  const health = useQuery({
    queryKey: ["health", "version"],
    queryFn: ({ signal }) => request<{ version: string }>("healthz", { signal }),
    enabled: ready.isSuccess && ready.data !== null,
  });
  return (
    <>
      <Section title={WORDS.title}>
        {ready.isPending && <p className="quiet">{t.loading}</p>}
        {ready.isError && <ProblemNote problem={ready.error} onRetry={() => void ready.refetch()} />}
        {ready.data === null && <p>{WORDS.inside}</p>}
        {ready.data !== undefined && ready.data !== null && (
          <>
            <p role="status">
              <span className={ready.data.ready ? "badge good" : "badge bad"}>
                {ready.data.ready ? WORDS.ready : WORDS.notReady}
              </span>
            </p>
            <ul className="plain-list stations">
              {stationsOf(ready.data).map((station) => (
                <StationRow key={station.name} station={station} />
              ))}
            </ul>
          </>
        )}
        <p className="quiet small">
          {health.data !== undefined && `${WORDS.version(health.data.version)} · `}
          <a href={address("docs")}>{WORDS.api}</a>
        </p>
      </Section>
      {operator && <Files />}
    </>
  );
}

function StationRow({ station: { name, state, lines } }: { station: Station }) {
  return (
    <li className={`station ${state}`}>
      <b>{name}</b>
      <span>{lines.join("; ")}</span>
    </li>
  );
}

/** Database, files and index compared on demand, and mended. */
function Files() {
  const look = useMutation({
    mutationFn: (repair: boolean) => request<Findings>("v1/admin/reconcile", { method: "POST", body: { repair } }),
  });
  const mendable = look.data?.findings.some((finding) => finding.mendable && !finding.mended) ?? false;
  return (
    <Section title={WORDS.files} lead={WORDS.filesLead}>
      <div className="row">
        <button type="button" disabled={look.isPending} onClick={() => look.mutate(false)}>
          {look.isPending ? WORDS.looking : WORDS.look}
        </button>
        {mendable && (
          <button type="button" disabled={look.isPending} onClick={() => look.mutate(true)}>
            {WORDS.repair}
          </button>
        )}
      </div>
      <div role="status">
        {look.isError && <ProblemNote problem={look.error} />}
        {look.data !== undefined && <Found found={look.data} />}
      </div>
    </Section>
  );
}

function Found({ found }: { found: Findings }) {
  if (found.findings.length === 0) {
    return <p>{WORDS.consistent(countText(found.versions), countText(found.chunks))}</p>;
  }
  return (
    <Table
      label={WORDS.files}
      items={found.findings}
      keyOf={({ code }) => code}
      columns={[
        { header: WORDS.files, cell: ({ detail }) => detail },
        {
          header: t.admin.keys.state,
          cell: ({ mended, mendable }) => (
            <span className={mended ? "badge good" : "badge warn"}>
              {mended ? WORDS.mended : mendable ? WORDS.mendable : WORDS.byHand}
            </span>
          ),
        },
      ]}
    />
  );
}

/** `/readyz` says as much when it is not ready, with another status. Null where a proxy keeps it inside. */
async function readiness(signal: AbortSignal): Promise<Readiness | null> {
  const response = await fetch(address("readyz"), { signal });
  if (response.status === 404) return null;
  if (response.status !== 200 && response.status !== 503) throw await problemOf(response);
  return (await response.json()) as Readiness;
}
