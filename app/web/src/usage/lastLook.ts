/** When the server last compared the books, as `/readyz` says it. */
export interface LastLook {
  ok: boolean | null;
  asOf: number | null;
  mismatches: string[];
}

export function lastLook(checks: Record<string, unknown>): LastLook | null {
  const { ledger } = checks;
  if (typeof ledger !== "object" || ledger === null) return null;
  const told = ledger as Record<string, unknown>;
  return {
    ok: typeof told.ok === "boolean" ? told.ok : null,
    asOf: typeof told.as_of === "number" ? told.as_of : null,
    mismatches: Array.isArray(told.mismatches) ? told.mismatches.map(String) : [],
  };
}
