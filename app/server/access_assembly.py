"""Assembles access: the authenticator, keys, sessions, people and their invitations."""

from contextlib import ExitStack

from app.access.authenticator import Authenticator, KeyLookup
from app.access.key_cache import KeyCache
from app.access.last_use import INTERVAL_S, LastUses
from app.access.openid import open_id
from app.access.provider_tokens import ProviderTokens
from app.access.startup_keys import LocalKey, ensure_first_key
from app.admission.address_rate import AddressRate
from app.clock import SteadyClock
from app.db.audit import AuditLog
from app.db.invitations import InvitationRepository
from app.db.keys import KeyRepository
from app.db.session import Database
from app.db.sessions import SessionRepository
from app.db.tenants import TenantRepository
from app.db.users import UserRepository
from app.outbound.mail import Mailer
from app.outbound.threads import OutboundThreads
from app.receipts.signing_keys import SigningKeys, sealing_secret
from app.server.periodic import PeriodicThread
from app.server.state import AccessState
from app.settings import Settings
from app.types import DEFAULT_TENANT

_OPENID_THREADS = 4  # sign-ins that wait for the provider at once; an address has half of them
_MAIL_THREADS = 4  # mails sent at once; a tenant has half of them
_OPENID_PER_MINUTE = 120  # requests of an address: two for each sign-in, and many people share an address


def access_of(
    settings: Settings,
    database: Database,
    audit: AuditLog,
    stack: ExitStack,
    *,
    clock: SteadyClock,
    key_cache: KeyCache,
    local_secret: str | None,
) -> AccessState:
    """Keys, sessions, users and invitations. The first start of an installation creates its first key.

    Args:
        settings: The server's.
        database: Where all of it is stored.
        audit: The audit log.
        stack: Stops what is started here.
        clock: The time.
        key_cache: Holds the keys that authenticated just now.
        local_secret: A key that counts without being stored, None for none.
    """
    changed = key_cache.invalidate
    keys = KeyRepository(database, on_change=changed, clock=clock)
    sessions = SessionRepository(database, hours=settings.session_hours, on_change=changed, clock=clock)
    ensure_first_key(keys, settings.admin_key, tenant_id=DEFAULT_TENANT, address=settings.address())
    lookup: KeyLookup = keys
    if local_secret is not None:
        lookup = LocalKey(keys, secret=local_secret, tenant_id=DEFAULT_TENANT)
    last_uses = LastUses(keys.note_uses, clock=clock)
    noting = PeriodicThread(
        last_uses.flush, name="last-uses", interval=INTERVAL_S, failed="last_uses.failed", once_more=True
    )
    noting.start()
    stack.callback(noting.stop)
    openid, openid_threads = open_id(settings), OutboundThreads(_OPENID_THREADS)
    users = UserRepository(database, on_change=changed, clock=clock)
    tenants = TenantRepository(database, on_change=changed, clock=clock)
    provider_tokens = None
    if openid is not None and settings.mcp_url:
        provider_tokens = ProviderTokens(
            openid, resource=settings.mcp_url, users=users, tenants=tenants, threads=openid_threads, clock=clock
        )
    return AccessState(
        authenticator=Authenticator(lookup, sessions, cache=key_cache, on_use=last_uses.seen),
        keys=keys,
        sessions=sessions,
        openid=openid,
        provider_tokens=provider_tokens,
        openid_threads=openid_threads,
        openid_rate=AddressRate(_OPENID_PER_MINUTE, name="openid-requests"),
        users=users,
        tenants=tenants,
        invitations=InvitationRepository(database, sessions, clock=clock),
        mailer=Mailer(settings) if settings.smtp_url else None,
        mail_threads=OutboundThreads(_MAIL_THREADS),
        last_uses=last_uses,
        signing_keys=SigningKeys(database, sealing_secret(settings.secret, settings.data_dir)),
        audit=audit,
    )
