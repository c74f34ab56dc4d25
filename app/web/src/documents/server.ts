/** The requests of the documents screens. */
import { eventsOf } from "../api/events";
import { Problem, request, send } from "../api/http";
import type {
  Archive,
  Collection,
  Comparison,
  Document,
  DocumentStatus,
  DocumentVersion,
  Metadata,
  Page,
} from "../api/types";
import { upload as sendFile } from "./upload";
import type { Server } from "./uploads";

const PAGE = 50;
const LARGEST_PAGE = 500;
const HASHED_BYTES = 64_000_000; // of a file that is read whole to compare it

export interface Wanted {
  q: string;
  collectionId: string | null;
  status: DocumentStatus | null;
  filter: Record<string, unknown> | null;
}

export function listDocuments(wanted: Wanted, cursor: string | null, signal: AbortSignal): Promise<Page<Document>> {
  const { q, collectionId, status, filter } = wanted;
  return request("v1/documents", {
    query: {
      q: q.trim(),
      collection_id: collectionId,
      status,
      filter: filter === null ? null : JSON.stringify(filter),
      limit: PAGE,
      cursor,
    },
    signal,
  });
}

export function readDocument(id: string, signal?: AbortSignal): Promise<Document> {
  return request(`v1/documents/${encodeURIComponent(id)}`, signal === undefined ? {} : { signal });
}

export async function listCollections(signal: AbortSignal): Promise<Collection[]> {
  const all: Collection[] = [];
  let cursor: string | null = null;
  do {
    const page: Page<Collection> = await request("v1/collections", { query: { limit: LARGEST_PAGE, cursor }, signal });
    all.push(...page.data);
    cursor = page.next_cursor;
  } while (cursor !== null);
  return all;
}

export function makeCollection(name: string): Promise<Collection> {
  return request("v1/collections", { method: "POST", body: { name } });
}

export function renameCollection(id: string, name: string): Promise<Collection> {
  return request(`v1/collections/${encodeURIComponent(id)}`, { method: "PATCH", body: { name } });
}

/** Says how a language model is to word answers from a collection. */
export function instructCollection(id: string, instructions: string): Promise<Collection> {
  return request(`v1/collections/${encodeURIComponent(id)}`, { method: "PATCH", body: { instructions } });
}

/** Deletes a collection and, with `force`, the documents in it. */
export async function deleteCollection(id: string, force: boolean): Promise<void> {
  await send(`v1/collections/${encodeURIComponent(id)}`, { method: "DELETE", query: { force } });
}

/** Has the server fetch what is at an address of the web; an archive there makes several documents. */
export async function addAddress(url: string, collectionId: string | null): Promise<Document[]> {
  const body = { url, ...(collectionId === null ? {} : { collection_id: collectionId }) };
  const made = await request<Document | Archive>("v1/documents", { method: "POST", body });
  return made.object === "list" ? made.data : [made];
}

export function listVersions(id: string, signal: AbortSignal): Promise<Page<DocumentVersion>> {
  return request(`v1/documents/${encodeURIComponent(id)}/versions`, { query: { limit: LARGEST_PAGE }, signal });
}

/** What changed from an earlier version to the one that is used for answers. */
export function compareVersions(
  id: string,
  version: number,
  cursor: string | null,
  signal: AbortSignal,
): Promise<Comparison> {
  return request(`v1/documents/${encodeURIComponent(id)}/compare`, {
    query: { version, limit: PAGE, cursor },
    signal,
  });
}

export function changeMetadata(id: string, metadata: Metadata): Promise<Document> {
  return request(`v1/documents/${encodeURIComponent(id)}`, { method: "PATCH", body: { metadata } });
}

export function retryDocument(id: string, password: string | null): Promise<Document> {
  return request(`v1/documents/${encodeURIComponent(id)}/retry`, {
    method: "POST",
    body: password === null || password === "" ? {} : { password },
  });
}

/** What uploading needs. */
export const server: Server = {
  async list(limit, signal) {
    const page = await request<Page<Document>>("v1/documents", { query: { limit }, signal });
    return page.data;
  },
  async read(id, signal) {
    try {
      return await readDocument(id, signal);
    } catch (error) {
      if (error instanceof Problem && error.status === 404) return null;
      throw error;
    }
  },
  async *stream(id, signal) {
    const response = await send(`v1/documents/${encodeURIComponent(id)}/events`, {
      headers: { Accept: "text/event-stream" },
      signal,
    });
    for await (const { event, data } of eventsOf(response)) {
      if (event === "progress") yield JSON.parse(data) as Document;
    }
  },
  async send(upload, file, { onProgress, signal }) {
    const form = new FormData();
    if (upload.password !== null && upload.password !== "") form.append("password", upload.password);
    if (upload.replaces === null && upload.collectionId !== null) form.append("collection_id", upload.collectionId);
    form.append("file", file, upload.name);
    return sendFile({
      ...(upload.replaces === null
        ? { method: "POST", path: "v1/documents", headers: { "Idempotency-Key": upload.key } }
        : { method: "PUT", path: `v1/documents/${encodeURIComponent(upload.replaces)}` }),
      form,
      onProgress,
      signal,
    });
  },
  async sameName(upload, file, signal) {
    const page = await request<Page<Document>>("v1/documents", {
      query: { q: upload.name, collection_id: upload.collectionId, limit: LARGEST_PAGE },
      signal,
    });
    const alike = page.data.filter(({ filename }) => filename === upload.name);
    for (const document of alike) if (await isSame(document, file)) return null;
    return alike[0] ?? null;
  },
  retry: retryDocument,
};

/** Whether a file is what is there already, as far as a page can tell; the server then says so itself. */
async function isSame(document: Document, file: File): Promise<boolean> {
  if (document.bytes !== file.size) return false;
  // Only on https and on the machine itself do browsers compute digests.
  if (file.size > HASHED_BYTES || !("subtle" in crypto)) return true;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", await file.arrayBuffer()));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("") === document.sha256;
}
