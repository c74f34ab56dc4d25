/** Whether the window is so and so, and again when it changes. */
import { useCallback, useSyncExternalStore } from "react";

/** Room for a passage beside the conversation. */
export const WIDE = "(min-width: 70rem)";
/** Room for the list of conversations beside it. */
export const ROOMY = "(min-width: 52rem)";

export function useMedia(query: string): boolean {
  const subscribe = useCallback(
    (listener: () => void) => {
      const list = window.matchMedia(query);
      list.addEventListener("change", listener);
      return () => list.removeEventListener("change", listener);
    },
    [query],
  );
  return useSyncExternalStore(subscribe, () => window.matchMedia(query).matches);
}
