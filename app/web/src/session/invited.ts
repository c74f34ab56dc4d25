/** The token of an invitation or a sign-in link, `#/invitation/…`. Looking at it uses nothing; the person is asked. */
import { request, setToken } from "../api/http";
import type { AcceptedInvitation, InvitationPreview } from "../api/types";
import { secretInAddress } from "./secretInAddress";

const tokens = secretInAddress(tokenIn);

export const watchInvitations = tokens.watch;
export const invitationToken = tokens.current;
export const onInvitation = tokens.subscribe;
/** Forgets the token: it was used, or declined. */
export const settleInvitation = tokens.settle;

/** The token in a fragment, if it has one. */
export function tokenIn(fragment: string): string | null {
  return /^#\/invitation\/([\w-]{1,200})$/.exec(fragment)?.[1] ?? null;
}

/** Who invites to what. */
export function preview(token: string): Promise<InvitationPreview> {
  return request<InvitationPreview>("v1/invitations/preview", { method: "POST", body: { token } });
}

/** Uses the link. The browser is signed in then. */
export async function accept(token: string): Promise<AcceptedInvitation> {
  const accepted = await request<AcceptedInvitation>("v1/invitations/accept", { method: "POST", body: { token } });
  setToken(accepted.session.csrf_token);
  return accepted;
}

let firstKey: string | null = null;
const watchers = new Set<() => void>();

/** The key of somebody who has just come in, until they have stored it. It is held in memory alone. */
export function newKey(): string | null {
  return firstKey;
}

export function setNewKey(secret: string | null): void {
  firstKey = secret;
  for (const changed of watchers) changed();
}

export function onNewKey(changed: () => void): () => void {
  watchers.add(changed);
  return () => watchers.delete(changed);
}
