/** Reports as files. The server sends one where it is asked for in the `Accept` header, which a link cannot do. */
import { send } from "../api/http";

/** Have the browser save a report of the whole range, under the name the server gives it. */
export async function saveCsv(path: string, query: Record<string, string | number | undefined>): Promise<void> {
  const response = await send(path, { query, headers: { Accept: "text/csv" } });
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = nameOf(response.headers.get("Content-Disposition")) ?? "footnote.csv";
  document.body.append(link);
  link.click();
  link.remove();
  // Only when the browser has taken it up; a minute is long enough to say where to save it.
  window.setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** The file name of a `Content-Disposition` (RFC 6266) as the server writes it. */
export function nameOf(disposition: string | null): string | null {
  return /filename="([^"\\/]+)"/.exec(disposition ?? "")?.[1] ?? null;
}
