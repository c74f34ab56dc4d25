/** Sending a file: `fetch` does not tell how much of a body has left, XMLHttpRequest does. */
import { address, Problem, problemOf, token } from "../api/http";
import type { Archive, Document } from "../api/types";
import { type Refusal, refusalOf } from "./refusals";

export interface Sending {
  method: "POST" | "PUT";
  path: string;
  form: FormData;
  headers?: Record<string, string>;
  onProgress: (loaded: number) => void;
  signal: AbortSignal;
}

export type Outcome =
  | { is: "document"; document: Document }
  | { is: "archive"; archive: Archive }
  | { is: "refused"; refusal: Refusal };

/** Sends a form with a file; rejects only when it was aborted. */
export function upload({ method, path, form, headers = {}, onProgress, signal }: Sending): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const aborted = () => reject(new DOMException("aborted", "AbortError"));
    if (signal.aborted) return aborted();
    const stop = () => request.abort();
    signal.addEventListener("abort", stop, { once: true });
    request.open(method, address(path));
    request.setRequestHeader("Accept", "application/json");
    const csrf = token();
    if (csrf !== null) request.setRequestHeader("X-Footnote-CSRF", csrf);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.upload.onprogress = (event) => onProgress(event.loaded);
    request.onabort = aborted;
    request.onerror = () => {
      resolve({ is: "refused", refusal: refusalOf(new Problem(0, "about:blank", "", "", null, null)) });
    };
    request.onload = () => void outcomeOf(request).then(resolve);
    request.onloadend = () => signal.removeEventListener("abort", stop);
    request.send(form);
  });
}

async function outcomeOf(request: XMLHttpRequest): Promise<Outcome> {
  const { status, responseText } = request;
  if (status >= 200 && status < 300) {
    try {
      const body = JSON.parse(responseText) as Document | Archive;
      if (body.object === "list") return { is: "archive", archive: body };
      return { is: "document", document: body };
    } catch (error) {
      return { is: "refused", refusal: refusalOf(error) };
    }
  }
  const headers = new Headers();
  for (const name of ["Retry-After", "X-Request-Id"]) {
    const value = request.getResponseHeader(name);
    if (value !== null) headers.set(name, value);
  }
  const response = new Response(responseText, { status, headers });
  return { is: "refused", refusal: refusalOf(await problemOf(response), codeOf(responseText)) };
}

function codeOf(body: string): string {
  try {
    const { code } = JSON.parse(body) as { code?: unknown };
    return typeof code === "string" ? code : "";
  } catch {
    return "";
  }
}
