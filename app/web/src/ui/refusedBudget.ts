/** What a refusal by a budget tells of it (`urn:footnote:problem:budget-exceeded`). */
import { Problem } from "../api/http";

export interface RefusedBudget {
  id: string;
  /** The server's sentence: that the budget has no room, or why it never has. */
  said: string;
  unit: "tokens" | "cost";
  limit: number | string;
  used: number | string;
  reserved: number | string;
  /** Unix seconds; null where no later time has room for the call. */
  resetAt: number | null;
}

/** The budget that refused a call; null where a problem is another. */
export function refusedBudget(problem: unknown): RefusedBudget | null {
  if (!(problem instanceof Problem) || problem.slug !== "budget-exceeded") return null;
  const { budget_id: id, unit, limit, used, reserved, reset_at: resetAt } = problem.members;
  const amounts = [limit, used, reserved];
  if (typeof id !== "string" || (unit !== "tokens" && unit !== "cost")) return null;
  if (!amounts.every((one) => (unit === "cost" ? typeof one === "string" : Number.isSafeInteger(one)))) return null;
  const [most, taken, held] = amounts as [number, number, number] | [string, string, string];
  return {
    id,
    said: problem.detail,
    unit,
    limit: most,
    used: taken,
    reserved: held,
    resetAt: typeof resetAt === "number" ? resetAt : null,
  };
}
