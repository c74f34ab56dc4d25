/** Which field of a form a refusal is about. */
import { Problem } from "../api/http";

export interface Refusal {
  /** Null where it is about no field of the form. */
  field: string | null;
  text: string;
}

/** A refusal as what is said beside one of `fields`, named as the API names them, or else under the form. */
export function refusalOf(problem: unknown, fields: readonly string[]): Refusal | null {
  if (!(problem instanceof Problem) || problem.status !== 422) return null;
  const [first = ""] = problem.detail.split("; ");
  // A malformed field is named before what is wrong with it.
  const [, said = null, rest = first] = /^([a-z_.0-9]+): (.+)$/s.exec(first) ?? [];
  const [begins = ""] = first.split(" ");
  const param = paramOf(problem) ?? said ?? begins;
  const field = fields.find((name) => param === name || param.startsWith(`${name}.`)) ?? null;
  return { field, text: said !== null && said === param ? rest : problem.detail };
}

function paramOf(problem: object): string | null {
  return "param" in problem && typeof problem.param === "string" ? problem.param : null;
}

/** What a form finds wrong by itself, before it asks the server. */
export class Wrong extends Error {
  constructor(
    readonly field: string,
    readonly text: string,
  ) {
    super(text);
    this.name = "Wrong";
  }
}
