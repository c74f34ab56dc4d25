/** Requests to the server this page came from. The session is a cookie; what changes something names its token too. */

/** An answer that is none: a problem document (RFC 9457), or a server that cannot be reached (status 0). */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly type: string,
    readonly title: string,
    readonly detail: string,
    readonly retryAfter: number | null,
    readonly requestId: string | null,
    /** The field of the request it is about. */
    readonly param: string | null = null,
    /** All members of the problem document: those of its type, such as a budget's limit, are among them. */
    readonly members: Readonly<Record<string, unknown>> = {},
  ) {
    super(detail || title);
    this.name = "Problem";
  }

  /** The last part of the problem's type, such as `budget-exceeded`. */
  get slug(): string {
    return this.type.split(/[/:]/).at(-1) ?? this.type;
  }
}

type Query = Record<string, string | number | boolean | null | undefined | readonly string[]>;

export interface RequestOptions {
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Sent as JSON, unless it is form data. */
  body?: unknown;
  query?: Query;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

let csrfToken: string | null = null;
let openid = false;

/** Whether people sign in through a provider here: what refuses a stranger says so, and what signs somebody out. */
export function hasProvider(): boolean {
  return openid;
}

export function setProvider(there: boolean): void {
  openid = there;
}

/** The token of the session at hand; `GET v1/session` tells it. */
export function setToken(token: string | null): void {
  csrfToken = token;
}

/** The token itself, for what cannot be sent by `send`: only XMLHttpRequest tells how much of an upload has left. */
export function token(): string | null {
  return csrfToken;
}

/** The address of a path of the API, wherever a proxy has put the page. */
export function address(path: string, query: Query = {}): string {
  const url = new URL(path, new URL(".", document.baseURI));
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined || value === "") continue;
    for (const one of Array.isArray(value) ? value : [value]) url.searchParams.append(name, String(one));
  }
  return url.href;
}

/** The response to a request, whatever its body is; throws a `Problem` unless it succeeded. */
export async function send(path: string, options: RequestOptions = {}): Promise<Response> {
  const { method = "GET", body, query, headers, signal } = options;
  const form = body instanceof FormData;
  const response = await reached(
    fetch(address(path, query), {
      method,
      headers: {
        Accept: "application/json",
        ...(body !== undefined && !form ? { "Content-Type": "application/json" } : {}),
        ...(method !== "GET" && csrfToken !== null ? { "X-Footnote-CSRF": csrfToken } : {}),
        ...headers,
      },
      body: body === undefined ? null : form ? body : JSON.stringify(body),
      credentials: "same-origin",
      signal: signal ?? null,
    }),
  );
  if (!response.ok) throw await problemOf(response);
  return response;
}

/** The body of a response, as JSON. */
export async function request<Body>(path: string, options: RequestOptions = {}): Promise<Body> {
  const response = await send(path, options);
  return (await response.json()) as Body;
}

/** What a response that is no success says, in whatever form it says it. */
export async function problemOf(response: Response): Promise<Problem> {
  const requestId = response.headers.get("X-Request-Id");
  let body: Record<string, unknown> = {};
  try {
    body = (await response.json()) as Record<string, unknown>;
  } catch {
    // A proxy's own page: its status is all there is to say.
  }
  // A body that was cut off says nothing of it.
  if (response.status === 401 && typeof body.openid === "boolean") openid = body.openid;
  return new Problem(
    response.status,
    text(body.type) || "about:blank",
    text(body.title) || response.statusText,
    text(body.detail),
    retryAfterOf(response),
    requestId,
    text(body.param) || null,
    body,
  );
}

/** When the server says to try again, in seconds; null where it does not say (RFC 9110, section 10.2.3). */
export function retryAfterOf(response: Response): number | null {
  const seconds = Number(response.headers.get("Retry-After"));
  return Number.isFinite(seconds) && seconds > 0 ? seconds : null;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

async function reached(response: Promise<Response>): Promise<Response> {
  try {
    return await response;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem(0, "about:blank", "", "", null, null);
  }
}
