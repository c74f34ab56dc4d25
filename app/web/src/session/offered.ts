/** The key in a link, `#key=…`, which `footnote serve` prints: a fragment reaches no server and no log. A key beside a
 * place of the page, `#/usage?key=…`, is taken too: it would stay in the address.
 *
 * Anybody can make such a link, for a key of their own. What is uploaded or asked after signing in with it is theirs. So
 * it signs nobody in by itself: the page says whose key it is and asks. */
import { Problem, request } from "../api/http";
import type { Session } from "../api/types";
import { secretInAddress } from "./secretInAddress";

/** Whose key a link has: `null` when the server does not know it, `undefined` when the server did not say. */
export type Owner = Pick<Session, "tenant_id" | "user_id" | "user_name" | "role" | "collections"> | null | undefined;

const keys = secretInAddress(keyIn, placeBeside);

/** Takes the key out of the address, now and whenever a link changes it, so that it is not left in the history. Called
 * before anything else reads the address. */
export function watchAddress(): void {
  keys.watch();
}

/** The key of the newest link, until it is settled. */
export function offeredKey(): string | null {
  return keys.current();
}

/** Forgets the key: the question is answered. */
export function settle(): void {
  keys.settle();
}

export function onOffer(changed: () => void): () => void {
  return keys.subscribe(changed);
}

/** `#key=…` alone, with or without the slash that a place begins with. */
const ALONE = /^#\/?\??key=(.+)$/;
/** A place of the page with `key` among what follows its `?`. */
const BESIDE = /^(#\/[^?]+)\?((?:[^&]*&)*?)key=([^&]+)(?:&(.*))?$/;

/** The key in a fragment, if it has one. */
export function keyIn(fragment: string): string | null {
  const found = ALONE.exec(fragment)?.[1] ?? BESIDE.exec(fragment)?.[3];
  if (found === undefined) return null;
  try {
    return decodeURIComponent(found);
  } catch {
    return found; // no valid percent-encoding: as it is written
  }
}

/** The place that a fragment names beside its key; "" where it names none. */
export function placeBeside(fragment: string): string {
  const [, place = "", before = "", , behind = ""] = BESIDE.exec(fragment) ?? [];
  const query = (before + behind).replace(/&$/, "");
  return query === "" ? place : `${place}?${query}`;
}

/** Asks the server whose key it is. This makes no session. */
export async function ownerOf(key: string): Promise<Owner> {
  try {
    return await request<Session>("v1/session", { headers: { Authorization: `Bearer ${key}` } });
  } catch (error) {
    return error instanceof Problem && error.status === 401 ? null : undefined;
  }
}

type Rights = Pick<Session, "tenant_id" | "user_id" | "role" | "collections">;

/** Whether two owners can do the same, so that there is nothing to switch to. */
export function isSame(one: Rights, other: Rights): boolean {
  const rights = ({ tenant_id, user_id, role, collections }: Rights) =>
    JSON.stringify([tenant_id, user_id, role, collections && [...collections].sort()]);
  return rights(one) === rights(other);
}
