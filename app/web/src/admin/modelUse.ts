/** Which models made calls lately, and how many tokens they took: these are the ones that need a price. */
import { request } from "../api/http";
import type { Completions, Embeddings, Judgements, Model, ReportPage, Reranks } from "../api/types";
import { REPORTS } from "../usage/query";

export const DAYS = 30;

/** One result of a report by model. */
type Result = Completions | Embeddings | Judgements | Reranks;

export interface ProposedModel {
  model: string;
  /** Null where it made no call. */
  tokens: number | null;
}

/** The results of all reports of model calls, by model and day, of the last `DAYS` days. */
export async function recentUse(signal: AbortSignal): Promise<Result[]> {
  const start = Math.floor(Date.now() / 1000) - DAYS * 86_400;
  // Thirty days from a moment on touch one day more.
  const query = { start_time: start, group_by: ["model"], limit: DAYS + 1 };
  const paths = [REPORTS.completions, REPORTS.embeddings, REPORTS.rerank, REPORTS.judge];
  const pages = await Promise.all(paths.map((path) => request<ReportPage<Result>>(path, { query, signal })));
  return pages.flatMap(({ data }) => data.flatMap(({ results }) => results));
}

/** Models that made calls, most tokens first, and then the others of `listed`, each once.
 *
 * Names are those of reports: of what is behind the models that one asks. */
export function proposedModels(used: readonly Result[], listed: readonly Model[]): ProposedModel[] {
  const tokens = new Map<string, number>();
  for (const result of used) {
    if (result.model == null || result.num_model_requests === 0) continue;
    tokens.set(result.model, (tokens.get(result.model) ?? 0) + tokensOf(result));
  }
  const called = [...tokens].sort(([one, many], [other, few]) => few - many || one.localeCompare(other));
  const behind = listed.flatMap(({ generator, embedder }) => (generator === null ? [embedder] : [generator, embedder]));
  const others = [...new Set(behind)].filter((model) => !tokens.has(model));
  return [...called.map(([model, tokens]) => ({ model, tokens })), ...others.map((model) => ({ model, tokens: null }))];
}

/** All tokens of a result, read and written. */
function tokensOf(result: Result): number {
  return "output_tokens" in result
    ? result.input_uncached_tokens + result.input_cached_tokens + result.output_tokens
    : result.input_tokens;
}
