/** How long a key works: chosen in words, sent as the API takes it. */

const DAY = 86_400;

export const LIVES = { never: null, day: DAY, week: 7 * DAY, month: 30 * DAY, year: 365 * DAY } as const;

export interface Life {
  choice: keyof typeof LIVES | "at" | "keep";
  /** Of `at`: a date and time on the browser's clock, as its input writes it. */
  at: string;
}

export type Expiry = { expires_in?: number | null; expires_at?: string | null };

/** The members of a request; none where it stays as it is. */
export function expiryOf({ choice, at }: Life): Expiry {
  if (choice === "keep") return {};
  if (choice === "at") return { expires_at: new Date(at).toISOString() };
  return { expires_in: LIVES[choice] };
}

/** Whether a key works, and until when: in the order in which it matters. */
export function stateOf(
  key: { revoked_at: string | null; expires_at: string | null },
  now: number,
): "revoked" | "expired" | "ending" | "working" {
  if (key.revoked_at !== null) return "revoked";
  if (key.expires_at === null) return "working";
  return Date.parse(key.expires_at) <= now ? "expired" : "ending";
}
