"""Routes of sessions: sign-in to the web page with a key or through an OpenID provider, and sign-out."""

from collections.abc import Callable
from typing import Annotated, TypeVar

import anyio
from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse

from app.access.authenticator import bearer_secret
from app.access.cookie import COOKIE, require_same_site, session_secret, set_cookie
from app.access.openid import CALLBACK_PATH, Identity, OpenId
from app.access.pending_login import LIFETIME_S
from app.admission.failed_logins import network_of
from app.api.dependencies import AccessDep, CallerDep, SettingsDep
from app.api.schemas.session import NewSession, SessionBody, SessionState, SignedOut
from app.api.schemas.shape import PROBLEMS, problems
from app.errors import InvalidRequest, NotFound, Unauthenticated
from app.server.state import AccessState
from app.settings import Settings
from app.types import Principal

Result = TypeVar("Result")

router = APIRouter(prefix="/v1/session", tags=["session"])

_LOGIN_COOKIE = "footnote_login"
_LOGIN_PATH = "/v1/session/oidc"
_LONGEST = 4096


@router.post("", status_code=201, summary="Sign in", responses=problems(422))
def sign_in(
    request: Request, response: Response, access: AccessDep, settings: SettingsDep, body: NewSession | None = None
) -> SessionBody:
    """Sign in with a key, in the Authorization header or the body. The session's secret is in an HttpOnly cookie.

    The session lasts for the server's session time, but never longer than its key.
    """
    require_same_site(request.headers)
    principal = access.keys.authenticate(_key_to_sign_in_with(request, body))
    if principal is None:
        raise Unauthenticated("The API key is not valid.")
    session, secret = access.sessions.open(principal, with_key=True)
    remember(request, response, settings, secret)
    return SessionBody.of(session, secret, web_pages=settings.web_pages)


def _key_to_sign_in_with(request: Request, body: NewSession | None) -> str:
    authorization = request.headers.get("authorization")
    if body is None:
        return bearer_secret(authorization)
    if authorization is not None and authorization.casefold().startswith("bearer"):
        # Failed sign-ins are not limited for a header with a good key, so it must not come with guesses.
        raise InvalidRequest("Send the key in the Authorization header or in the body, not in both.", param="key")
    return body.key.get_secret_value()


@router.get("", summary="Read the session", responses=problems())
def read_session(response: Response, access: AccessDep, settings: SettingsDep, caller: CallerDep) -> SessionBody:
    """The signed-in user, with the CSRF token that unsafe requests of this session need."""
    response.headers["Cache-Control"] = "no-store"
    if not caller.by_cookie:
        name = access.users.name_of(caller.principal)
        return SessionBody.of_key(caller.principal, user_name=name, web_pages=settings.web_pages)
    session = access.sessions.find(caller.secret)
    if session is None:
        raise Unauthenticated("The session is over.")
    return SessionBody.of(session, caller.secret, web_pages=settings.web_pages)


@router.get("/state", summary="Ask whether this browser is signed in", responses={503: PROBLEMS[503]})
def session_state(request: Request, response: Response, access: AccessDep, settings: SettingsDep) -> SessionState:
    """For the web page: 200 also without a session. A key in the Authorization header is not looked at."""
    response.headers["Cache-Control"] = "no-store"
    secret = session_secret(request.headers)
    found = None if secret is None else access.sessions.find(secret)
    body = None
    if found is not None and secret is not None:
        body = SessionBody.of(found, secret, web_pages=settings.web_pages)
    return SessionState(signed_in=body is not None, session=body, openid=access.openid is not None)


@router.delete("", summary="Sign out", responses=problems(404))
def sign_out(
    request: Request, response: Response, access: AccessDep, settings: SettingsDep, caller: CallerDep
) -> SignedOut:
    """End the session, so that its cookie is refused everywhere."""
    if not caller.by_cookie:
        raise NotFound("This request has a key and no session.")
    access.sessions.end(caller.secret)
    _set(request, response, settings, COOKIE, "", path="/", seconds=0, same_site="Strict")
    return SignedOut(openid=access.openid is not None)


def provider(access: AccessDep) -> OpenId:
    """The OpenID provider.

    Raises:
        NotFound: No provider is configured.
    """
    if access.openid is None:
        raise NotFound("This server has no OpenID provider.")
    return access.openid


ProviderDep = Annotated[OpenId, Depends(provider)]


@router.get(
    "/oidc/login",
    status_code=303,
    response_class=RedirectResponse,
    summary="Sign in with OpenID",
    responses=problems(404, 422, 429, 503),
)
async def begin_login(
    request: Request,
    access: AccessDep,
    settings: SettingsDep,
    openid: ProviderDep,
    next_path: Annotated[
        str, Query(alias="next", max_length=_LONGEST, description="The path on this server to go to after the sign-in.")
    ] = "/",
) -> RedirectResponse:
    """Redirect the browser to the provider, which redirects it back to the callback."""
    callback = _callback(request)
    url, sealed = await _at_provider(request, access, lambda: openid.begin(next_path=next_path, callback=callback))
    response = RedirectResponse(url, status_code=303)
    # Lax: the provider's redirect brings it back, which is a request from another site
    _set(request, response, settings, _LOGIN_COOKIE, sealed, path=_path(request), seconds=LIFETIME_S, same_site="Lax")
    return response


@router.get(
    "/oidc/callback",
    status_code=303,
    response_class=RedirectResponse,
    summary="Complete an OpenID sign-in",
    responses=problems(404, 422, 429, 503),
)
async def finish_login(
    request: Request,
    access: AccessDep,
    settings: SettingsDep,
    openid: ProviderDep,
    login_state: Annotated[
        str, Query(alias="state", max_length=_LONGEST, description="The `state` that was sent to the provider.")
    ] = "",
    code: Annotated[
        str, Query(max_length=_LONGEST, description="The authorization code, which is exchanged for tokens.")
    ] = "",
    error: Annotated[
        str, Query(max_length=_LONGEST, description="The provider's error code, when the sign-in failed.")
    ] = "",
) -> RedirectResponse:
    """Set the session cookie. The first sign-in creates a user in the configured tenant."""
    if error or not code:
        raise Unauthenticated("The OpenID provider did not sign you in.")
    sealed = request.cookies.get(_LOGIN_COOKIE)
    callback = _callback(request)
    identity = await _at_provider(
        request, access, lambda: openid.finish(code=code, state=login_state, cookie=sealed, callback=callback)
    )
    secret = await anyio.to_thread.run_sync(_session_of, identity, access, openid.config.tenant_id)
    response = RedirectResponse(identity.next_path, status_code=303)
    remember(request, response, settings, secret)
    _set(request, response, settings, _LOGIN_COOKIE, "", path=_path(request), seconds=0, same_site="Lax")
    return response


async def _at_provider(request: Request, access: AccessState, call: Callable[[], Result]) -> Result:
    """The result of a call that may wait for the provider. Anybody can ask for it, so it is limited by address.

    Raises:
        RateLimited: The address has made too many such requests.
        ServerFull: Too many of them wait for the provider.
    """
    address = request.client.host if request.client is not None else ""  # clients of a Unix socket have none
    access.openid_rate.count(address)
    return await access.openid_threads.run(call, party=network_of(address))


def _session_of(identity: Identity, access: AccessState, tenant_id: str) -> str:
    """The secret of a new session of this user, who is created at the first sign-in."""
    user = access.users.identified(
        issuer=identity.issuer, subject=identity.subject, tenant_id=tenant_id, name=identity.name
    )
    principal = Principal(tenant_id=tenant_id, user_id=user.id, key_id="", role=identity.role)
    _, secret = access.sessions.open(principal, with_key=False)
    return secret


def remember(request: Request, response: Response, settings: Settings, secret: str) -> None:
    """Set the cookie of a session with this secret."""
    seconds = round(settings.session_hours * 3600)
    _set(request, response, settings, COOKIE, secret, path="/", seconds=seconds, same_site="Strict")


def _set(
    request: Request,
    response: Response,
    settings: Settings,
    name: str,
    value: str,
    *,
    path: str,
    seconds: int,
    same_site: str,
) -> None:
    secure = settings.secure_cookies or request.url.scheme == "https"
    header = set_cookie(name, value, path=path, seconds=seconds, same_site=same_site, secure=secure)
    response.headers.append("Set-Cookie", header)
    response.headers["Cache-Control"] = "no-store"


def _path(request: Request) -> str:
    """The path of the OpenID routes for the browser, including a proxy's prefix."""
    return f"{request.scope.get('root_path', '')}{_LOGIN_PATH}"


def _callback(request: Request) -> str:
    return f"{str(request.base_url).rstrip('/')}{CALLBACK_PATH}"
