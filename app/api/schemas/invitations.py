"""Bodies of invitations."""

from typing import Literal

from pydantic import Field, SecretStr

from app.api.schemas.bounds import Ids
from app.api.schemas.budgets import Terms
from app.api.schemas.keys import NewKeyBody
from app.api.schemas.session import SessionBody
from app.api.schemas.shape import RequestBody, ResponseBody, rfc3339
from app.db.invitations import Invitation, Mail
from app.settings.access import MAIL_ADDRESS
from app.types import Role

_DAY_S = 86_400
_SHORTEST_S, _LONGEST_S = 60, 30 * _DAY_S
_EMAIL = "Address to mail the link to, where the server has a mail server; null: it is not mailed."
_COLLECTIONS = "Ids of the collections that the person's key is limited to; null: all."
_MAIL = "sent: a mail server took the mail; failed: none did; off: no address was given, or no mail server is set."


class _Sent(RequestBody):
    """The fields with which any link may be created."""

    email: str | None = Field(default=None, max_length=254, pattern=MAIL_ADDRESS, description=_EMAIL)


class NewInvitationBody(_Sent):
    """A person to invite."""

    name: str = Field(min_length=1, max_length=200, description="The person's display name.", examples=["Ada Lovelace"])
    role: Role = Field(
        default=Role.MEMBER, description="admin, member (documents and questions) or reader (questions)."
    )
    collections: Ids | None = Field(default=None, description=_COLLECTIONS)
    expires_in: float = Field(
        default=7 * _DAY_S,
        ge=_SHORTEST_S,
        le=_LONGEST_S,
        description="Seconds until the link expires, at most 30 days.",
        examples=[7 * _DAY_S],
    )
    budget: Terms | None = Field(default=None, description="A budget for the person's key, created with it.")


class NewSignInLink(_Sent):
    """A one-time link for a person who lost access."""

    role: Role | None = Field(
        default=None, description="The role of the person's new key; null: that of their newest valid key."
    )
    collections: Ids | None = Field(
        default=None, description="Limits the new key to collections; null: all; left out: as their newest valid key."
    )
    expires_in: float = Field(
        default=_DAY_S,
        ge=_SHORTEST_S,
        le=_LONGEST_S,
        description="Seconds until the link expires, at most 30 days.",
        examples=[_DAY_S],
    )


class InvitationBody(ResponseBody):
    """An invitation, or a sign-in link for a user, without its token, which is shown only once."""

    id: str = Field(description="The invitation's id.", examples=["inv_01k9"])
    object: Literal["invitation"] = Field(default="invitation", description="Always `invitation`.")
    kind: Literal["invitation", "sign_in"] = Field(
        description="invitation: for a new person; sign_in: for a user that exists."
    )
    name: str = Field(description="The person's display name.")
    email: str | None = Field(description="The address that it was to be mailed to; null without one.")
    role: Role = Field(description="The role of the person's key.")
    collections: list[str] | None = Field(description="Collections that the key is limited to; null: all.")
    user_id: str | None = Field(description="The user who accepted it, or whom it is for; null for a new person.")
    invited_by: str = Field(description="The user who created it.")
    invited_by_name: str = Field(description="Their display name; the id when none was set.")
    status: Literal["open", "accepted", "expired", "revoked"] = Field(description="Whether it can still be used.")
    mail: Mail = Field(description=_MAIL)
    created_at: str = Field(description="RFC 3339 UTC.")
    expires_at: str = Field(description="RFC 3339 UTC.")
    accepted_at: str | None = Field(description="RFC 3339 UTC; null while it is not accepted.")
    revoked_at: str | None = Field(description="RFC 3339 UTC; null while it is not revoked.")

    @classmethod
    def of(cls, invitation: Invitation, *, now: float) -> "InvitationBody":
        """The body for an invitation; `now` is Unix seconds."""
        return cls(**_fields(invitation, now))


class CreatedInvitationBody(InvitationBody):
    """An invitation with its link."""

    link: str = Field(
        description="The link that lets the person in, once; it is shown only once.",
        examples=["https://footnote.example.org/#/invitation/…"],
    )

    @classmethod
    def created(cls, invitation: Invitation, link: str, *, now: float) -> "CreatedInvitationBody":
        """The body for an invitation and its link."""
        return cls(**_fields(invitation, now), link=link)


class InvitationToken(RequestBody):
    """The token of a link."""

    token: SecretStr = Field(min_length=1, max_length=200, description="The part of the link after `#/invitation/`.")


class InvitationPreview(ResponseBody):
    """The purpose of a link, before it is used."""

    object: Literal["invitation.preview"] = Field(
        default="invitation.preview", description="Always `invitation.preview`."
    )
    kind: Literal["invitation", "sign_in"] = Field(
        description="invitation: for a new person; sign_in: for a user that exists."
    )
    name: str = Field(description="The display name of the person it is for.")
    invited_by_name: str = Field(description="The display name of the administrator who created it.")
    tenant_name: str = Field(description="The name of the tenant; its id when none was set.")
    role: Role = Field(description="The role that the person will have.")
    collections: list[str] | None = Field(description="Names of the collections they will see; null: all.")
    expires_at: str = Field(description="RFC 3339 UTC.")

    @classmethod
    def of(cls, invitation: Invitation, *, collections: list[str] | None) -> "InvitationPreview":
        """The body for an invitation; `collections` are names."""
        return cls(
            kind=_kind(invitation),
            name=invitation.name,
            invited_by_name=invitation.inviter_name,
            tenant_name=invitation.tenant_name or invitation.tenant_id,
            role=invitation.role,
            collections=collections,
            expires_at=rfc3339(invitation.expires_at),
        )


class AcceptedInvitationBody(ResponseBody):
    """An accepted invitation: the browser is signed in, and the person has a key."""

    object: Literal["invitation.accepted"] = Field(
        default="invitation.accepted", description="Always `invitation.accepted`."
    )
    session: SessionBody = Field(description="The session that the response's cookie signs in to.")
    key: NewKeyBody = Field(description="The person's key, to sign in with again; its secret is shown only once.")


def _fields(invitation: Invitation, now: float) -> dict[str, object]:
    return {
        "id": invitation.id,
        "kind": _kind(invitation),
        "name": invitation.name,
        "email": invitation.email or None,
        "role": invitation.role,
        "collections": None if invitation.collections is None else [*invitation.collections],
        "user_id": invitation.user_id or invitation.for_user_id,
        "invited_by": invitation.created_by,
        "invited_by_name": invitation.inviter_name,
        "status": _status(invitation, now),
        "mail": invitation.mail,
        "created_at": rfc3339(invitation.created_at),
        "expires_at": rfc3339(invitation.expires_at),
        "accepted_at": None if invitation.accepted_at is None else rfc3339(invitation.accepted_at),
        "revoked_at": None if invitation.revoked_at is None else rfc3339(invitation.revoked_at),
    }


def _kind(invitation: Invitation) -> Literal["invitation", "sign_in"]:
    return "invitation" if invitation.for_user_id is None else "sign_in"


def _status(invitation: Invitation, now: float) -> Literal["open", "accepted", "expired", "revoked"]:
    if invitation.accepted_at is not None:
        return "accepted"
    if invitation.revoked_at is not None:
        return "revoked"
    return "expired" if invitation.expires_at <= now else "open"
