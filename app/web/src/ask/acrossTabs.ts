/** Tells the page's other tabs that conversations have changed, so that their lists show it without a reload. */
import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

/** Null in a browser that has none: its tabs read again when they get the focus. A channel does not hear itself. */
const channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("footnote-conversations");

/** Says in every other tab that conversations have changed, and reads those of `queryKey` again in this one. */
export async function conversationsChanged(
  queries: QueryClient,
  queryKey: readonly string[] = ["conversations"],
): Promise<void> {
  channel?.postMessage(null);
  await queries.invalidateQueries({ queryKey });
}

/** Reads conversations again when another tab has changed them, and when this one gets the focus: another browser may
 * have changed them too. */
export function useOtherTabs(): void {
  const queries = useQueryClient();
  useEffect(() => {
    const readAgain = () => void queries.invalidateQueries({ queryKey: ["conversations"] });
    channel?.addEventListener("message", readAgain);
    window.addEventListener("focus", readAgain);
    return () => {
      channel?.removeEventListener("message", readAgain);
      window.removeEventListener("focus", readAgain);
    };
  }, [queries]);
}
