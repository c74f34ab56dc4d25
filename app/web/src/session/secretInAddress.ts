/** A secret in the address's fragment, which reaches no server and no log. It is taken out of the address at once, so
 * that it is not left in the history, and held until what it is for is settled. */

export interface HeldSecret {
  /** Takes it out of the address, now and whenever a link changes it. Called before anything else reads the address. */
  watch: () => void;
  /** That of the newest link, until it is settled. */
  current: () => string | null;
  settle: () => void;
  subscribe: (changed: () => void) => () => void;
}

/** `read` finds the secret in a fragment; null where there is none. `without` is the fragment that stays. */
export function secretInAddress(
  read: (fragment: string) => string | null,
  without: (fragment: string) => string = () => "",
): HeldSecret {
  let held: string | null = null;
  const watchers = new Set<() => void>();

  function hold(secret: string | null): void {
    held = secret;
    for (const changed of watchers) changed();
  }
  function take(): void {
    const { hash, pathname, search } = window.location;
    const secret = read(hash);
    if (secret === null) return;
    window.history.replaceState(null, "", pathname + search + without(hash));
    hold(secret);
  }
  return {
    watch: () => {
      take();
      // Of a link that is pasted into an open page, `popstate` comes first: before a screen looks for its place in the
      // fragment. A script that changes the fragment may cause `hashchange` alone.
      window.addEventListener("popstate", take);
      window.addEventListener("hashchange", take);
    },
    current: () => held,
    settle: () => hold(null),
    subscribe: (changed) => {
      watchers.add(changed);
      return () => watchers.delete(changed);
    },
  };
}
