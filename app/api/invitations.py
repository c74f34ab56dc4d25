"""Routes of invitations and sign-in links: creating and revoking them, and accepting one without a key."""

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

import anyio
import sqlalchemy as sa
from fastapi import APIRouter, Query, Request, Response

from app.access.cookie import require_same_site
from app.api.budgets import checked_terms
from app.api.dependencies import (
    AccessDep,
    CorpusDep,
    Cursor,
    Limit,
    PrincipalDep,
    RequestId,
    SettingsDep,
    UsageDep,
    visible_collection,
)
from app.api.schemas.bounds import Id
from app.api.schemas.budgets import BudgetBody, Terms
from app.api.schemas.invitations import (
    AcceptedInvitationBody,
    CreatedInvitationBody,
    InvitationBody,
    InvitationPreview,
    InvitationToken,
    NewInvitationBody,
    NewSignInLink,
)
from app.api.schemas.keys import NewKeyBody
from app.api.schemas.session import SessionBody
from app.api.schemas.shape import PROBLEMS, Page, problems
from app.api.sessions import remember
from app.db.invitations import Invitation, Mail, NewInvitation
from app.errors import InvalidRequest, NotFound, ServerFull, StorageFull, StoreUnavailable
from app.outbound.mail import Letter, MailNotSent, one_line
from app.server.state import AccessState, DocumentsState
from app.types import ApiKey, Principal, Role
from app.usage.budgets.rows import Budget

router = APIRouter(tags=["administration"])

_STRANGERS: dict[int | str, dict[str, Any]] = {status: PROBLEMS[status] for status in (403, 404, 422)}


@router.post("/v1/admin/invitations", status_code=201, summary="Invite a person", responses=problems(404, 409, 422))
async def create_invitation(
    body: NewInvitationBody,
    request: Request,
    corpus: CorpusDep,
    access: AccessDep,
    usage: UsageDep,
    settings: SettingsDep,
    principal: PrincipalDep,
    request_id: RequestId,
) -> CreatedInvitationBody:
    """Create a link that lets one person in, once. Only this response holds it.

    Whoever opens it first becomes a user with this name and role. With `email` and a mail server the link is mailed
    too; it works whether or not the mail could be sent.
    """

    def create() -> tuple[Invitation, str]:
        if body.budget is not None:
            checked_terms(body.budget, usage, settings)
        new = NewInvitation(
            name=body.name,
            email=body.email or "",
            role=body.role,
            collections=_visible(body.collections, corpus, principal),
            budget=None if body.budget is None else body.budget.model_dump(mode="json"),
            lifetime_s=body.expires_in,
        )
        record = access.audit.recording(principal, "invitation.created", request_id=request_id)
        return access.invitations.create(principal, new, record=record)

    made, token = await anyio.to_thread.run_sync(create)
    return await _with_link(made, token, request, access)


@router.post(
    "/v1/admin/users/{user_id}/sign-in-link",
    status_code=201,
    summary="Create a sign-in link",
    responses=problems(404, 409, 422),
)
async def create_sign_in_link(
    user_id: Id,
    body: NewSignInLink,
    request: Request,
    corpus: CorpusDep,
    access: AccessDep,
    principal: PrincipalDep,
    request_id: RequestId,
) -> CreatedInvitationBody:
    """Create a one-time link for a person who lost access. It gives them a new key; their other keys stay as they are.

    The link is listed and revoked as an invitation. It expires after 24 hours, unless `expires_in` says otherwise.
    """

    def create() -> tuple[Invitation, str]:
        user = access.users.get(user_id, tenant_id=principal.tenant_id)
        newest = access.keys.newest_working(user_id, tenant_id=principal.tenant_id)
        role = body.role or (newest.role if newest is not None else None)
        if role is None:
            raise InvalidRequest("This person has no valid key whose role could be used: name one.", param="role")
        collections = newest.collections if newest is not None else None
        if "collections" in body.model_fields_set:
            collections = _visible(body.collections, corpus, principal)
        new = NewInvitation(
            for_user_id=user_id,
            name=user.name or user.id,
            email=body.email or "",
            role=role,
            collections=collections,
            lifetime_s=body.expires_in,
        )
        record = access.audit.recording(principal, "sign_in_link.created", request_id=request_id)
        return access.invitations.create(principal, new, record=record)

    made, token = await anyio.to_thread.run_sync(create)
    return await _with_link(made, token, request, access)


@router.get("/v1/admin/invitations", summary="List invitations", responses=problems(422))
def list_invitations(
    access: AccessDep,
    principal: PrincipalDep,
    only_open: Annotated[
        bool,
        Query(alias="open", description="Only those that can still be used; false: also the others."),
    ] = True,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[InvitationBody]:
    """The tenant's invitations and sign-in links, newest first."""
    found, following = access.invitations.list(
        tenant_id=principal.tenant_id, only_open=only_open, limit=limit, cursor=cursor
    )
    now = access.invitations.now()
    bodies = [InvitationBody.of(item, now=now) for item in found]
    return Page(data=bodies, has_more=following is not None, next_cursor=following)


@router.get("/v1/admin/invitations/{invitation_id}", summary="Read an invitation", responses=problems(404))
def read_invitation(invitation_id: Id, access: AccessDep, principal: PrincipalDep) -> InvitationBody:
    """An invitation, with its state; never its link."""
    found = access.invitations.get(invitation_id, tenant_id=principal.tenant_id)
    return InvitationBody.of(found, now=access.invitations.now())


@router.delete("/v1/admin/invitations/{invitation_id}", summary="Revoke an invitation", responses=problems(404, 409))
def revoke_invitation(
    invitation_id: Id, access: AccessDep, principal: PrincipalDep, request_id: RequestId
) -> InvitationBody:
    """Take a link back: it lets nobody in from now on. 409 once it was accepted."""
    record = access.audit.recording(principal, "invitation.revoked", request_id=request_id)
    revoked = access.invitations.revoke(invitation_id, tenant_id=principal.tenant_id, record=record)
    return InvitationBody.of(revoked, now=access.invitations.now())


@router.post("/v1/invitations/preview", summary="Look at an invitation", tags=["session"], responses=_STRANGERS)
def preview_invitation(
    body: InvitationToken, request: Request, response: Response, access: AccessDep, corpus: CorpusDep
) -> InvitationPreview:
    """The inviter and the rights of a link, without using it. Needs no key; wrong tokens count as failed sign-ins."""
    require_same_site(request.headers)
    response.headers["Cache-Control"] = "no-store"
    found = access.invitations.find(body.token.get_secret_value())
    names = None
    if found.collections is not None:
        known = {item.id: item.name for item in corpus.collections.list(found.tenant_id)}
        names = [known[collection_id] for collection_id in found.collections if collection_id in known]
    return InvitationPreview.of(found, collections=names)


@router.post(
    "/v1/invitations/accept",
    status_code=201,
    summary="Accept an invitation",
    tags=["session"],
    responses=_STRANGERS,
)
def accept_invitation(
    body: InvitationToken,
    request: Request,
    response: Response,
    access: AccessDep,
    usage: UsageDep,
    settings: SettingsDep,
    request_id: RequestId,
) -> AcceptedInvitationBody:
    """Use a link: create the person and a key, and sign the browser in. Of simultaneous requests one succeeds.

    Needs no key. 404 `invitation-not-valid` is the answer to a token that is unknown, used, revoked or expired; it
    counts as a failed sign-in.
    """
    require_same_site(request.headers)
    budgets: list[Budget] = []

    def settle(connection: sa.Connection, invited: Invitation, key: ApiKey) -> None:
        person = Principal(invited.tenant_id, key.user_id, key.id, key.role, key.collections)
        action = "invitation.accepted" if invited.for_user_id is None else "sign_in_link.used"
        detail = {"name": invited.name, "user_id": key.user_id, "key_id": key.id, "role": key.role}
        access.audit.record_in(connection, person, action, invited.id, detail, request_id=request_id)
        if invited.budget is not None:
            terms = checked_terms(Terms.model_validate(dict(invited.budget)), usage, settings)
            inviter = Principal(invited.tenant_id, invited.created_by, invited.created_by_key, Role.ADMIN)
            made = usage.budgets.create_in(connection, inviter, "key", key.id, terms, request_id=request_id)
            budgets.append(made)

    accepted = access.invitations.accept(body.token.get_secret_value(), settle=settle)
    remember(request, response, settings, accepted.session_secret)
    bodies = [BudgetBody.of(budget, currency=settings.currency) for budget in budgets]
    return AcceptedInvitationBody(
        session=SessionBody.of(accepted.session, accepted.session_secret, web_pages=settings.web_pages),
        key=NewKeyBody.created(accepted.key, accepted.key_secret, *bodies),
    )


def _visible(wanted: list[str] | None, corpus: DocumentsState, principal: Principal) -> tuple[str, ...] | None:
    """The collections to limit the person's key to.

    Raises:
        NotFound: One of them does not exist for the caller.
    """
    if wanted is None:
        return None
    for collection_id in wanted:
        visible_collection(corpus, principal, collection_id)
    return tuple(wanted)


async def _with_link(made: Invitation, token: str, request: Request, access: AccessState) -> CreatedInvitationBody:
    """The body with the link, after it was mailed where that is asked for and possible."""
    link = f"{str(request.base_url).rstrip('/')}/#/invitation/{token}"
    if made.email and access.mailer is not None:
        letter = _letter(made, link)
        mail = Mail.SENT
        try:
            await access.mail_threads.run(partial(access.mailer.send, letter), party=made.tenant_id)
        except (MailNotSent, ServerFull):
            mail = Mail.FAILED
        keep = partial(access.invitations.set_mail, made.id, mail, tenant_id=made.tenant_id)
        try:
            made = await anyio.to_thread.run_sync(keep)
        except (StoreUnavailable, StorageFull, NotFound):
            made = replace(made, mail=mail)  # the link exists, and nothing else shows it again
    return CreatedInvitationBody.created(made, link, now=access.invitations.now())


def _letter(made: Invitation, link: str) -> Letter:
    """The mail of an invitation, in plain text."""
    tenant, inviter, name = map(one_line, (made.tenant_name or "Footnote", made.inviter_name, made.name))
    until = f"{datetime.fromtimestamp(made.expires_at, tz=UTC):%Y-%m-%d %H:%M} UTC"
    if made.for_user_id is None:
        subject = f"{inviter} invites you to {tenant}"
        said = f"{inviter} invites you to {tenant}, where you can ask questions of its documents."
    else:
        subject = f"A link to sign in to {tenant}"
        said = f"{inviter} sends you a link to sign in to {tenant}."
    return Letter(
        to=made.email,
        subject=subject,
        text=f"Hello {name},\n\n{said}\n\nOpen this link. It works once, until {until}:\n\n{link}\n\n"
        "Whoever opens it first is let in under your name, so pass it to nobody. If you did not expect this mail, "
        "you need do nothing.\n",
    )
