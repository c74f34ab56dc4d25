import { useQuery } from "@tanstack/react-query";
import { request } from "../api/http";
import type { Model } from "../api/types";
import { useSession } from "../session/session";
import { t } from "../strings";
import { countText } from "../ui/numbers";
import { ProblemNote } from "../ui/ProblemNote";
import { Generations } from "./Generations";
import { ModelChoice } from "./ModelChoice";
import { readingText } from "./modelReading";
import { Reindexings } from "./Reindexings";
import { Section } from "./Section";

const WORDS = t.admin.models;
const NO_GENERATOR = "extractive";

/** Whether a measurement of a model is under way. */
function isMeasured({ probe }: Model): boolean {
  return probe?.source === "measuring";
}

/** Which models answer and find, the indexes they made, and reading documents again. */
export function ModelsSection() {
  const session = useSession();
  const models = useQuery({
    queryKey: ["models"],
    queryFn: ({ signal }) => request<{ data: Model[] }>("v1/models", { signal }),
    refetchInterval: ({ state }) => (state.data?.data.some(isMeasured) ? 2000 : false),
  });
  const asked = models.data?.data.find(({ generator }) => generator !== null);
  const reading = asked?.probe == null ? null : readingText(asked.probe);
  const embedder = models.data?.data.find(({ generator }) => generator === null);
  return (
    <>
      <Section title={WORDS.title}>
        {models.isPending && <p className="quiet">{t.loading}</p>}
        {models.isError && <ProblemNote problem={models.error} onRetry={() => void models.refetch()} />}
        <dl className="facts">
          {asked?.answers === "quotes" && (
            <div>
              <dt>{WORDS.answers}</dt>
              <dd>
                <b>{WORDS.quotes}</b>
              </dd>
            </div>
          )}
          {asked !== undefined && asked.generator !== NO_GENERATOR && (
            <div>
              <dt>{asked.answers === "quotes" ? WORDS.beside : WORDS.generator}</dt>
              <dd>
                <b>{asked.generator}</b>{" "}
                <span className="quiet small">{WORDS.window(countText(asked.context_window))}</span>
              </dd>
            </div>
          )}
          {reading !== null && (
            <div>
              <dt>{WORDS.reading.title}</dt>
              <dd>{reading}</dd>
            </div>
          )}
          {embedder !== undefined && (
            <div>
              <dt>{WORDS.embedder}</dt>
              <dd>
                <b>{embedder.id}</b>{" "}
                <span className="quiet small">
                  {WORDS.window(countText(embedder.context_window))}
                  {embedder.dimensions != null && `, ${WORDS.dimensions(countText(embedder.dimensions))}`}
                </span>
              </dd>
            </div>
          )}
        </dl>
      </Section>
      {session.operator && <ModelChoice />}
      <Generations />
      <Reindexings />
    </>
  );
}
