/** An entry of the audit log as a sentence with names. */
import type { AuditEvent } from "../api/types";
import { t } from "../strings";

const WORDS = t.admin.audit;
const OF_PEOPLE = /^(user|invitation|sign_in_link)\./;

type Told = Pick<AuditEvent, "action" | "target" | "user_name" | "target_name" | "target_user_name">;

/** Who did what to what of whom. What has no name is called by its id; what is no person has its name in marks. */
export function sentenceOf({ action, target, user_name: who, target_name, target_user_name: owner }: Told): string {
  const called = target_name ?? target;
  const name = target_name === null || OF_PEOPLE.test(action) ? called : `“${called}”`;
  return WORDS.told[action]?.({ who, name, owner }) ?? WORDS.other(who, action, name);
}
