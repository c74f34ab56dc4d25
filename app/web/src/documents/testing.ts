/** What the tests of this folder are made with. */
import type { Document } from "../api/types";

const MOMENT = "2026-11-21T10:00:00.000Z";

export function documentOf(id: string, more: Partial<Document> = {}): Document {
  return {
    id,
    object: "document",
    status: "queued",
    filename: `${id}.txt`,
    media_type: null,
    bytes: 10,
    sha256: "",
    version: 1,
    live_version: null,
    collection_id: "col_1",
    external_id: null,
    duplicate_of: null,
    metadata: {},
    job_id: "job_1",
    progress: null,
    counts: { pages: 0, chunks: 0, tokens: 0 },
    embedding: null,
    attempts: 1,
    error: null,
    next_attempt_at: null,
    usage: { embedding_tokens: 0 },
    created_at: MOMENT,
    updated_at: MOMENT,
    ...more,
  };
}
