"""Routes of signing in to the web page: a session cookie for a key, or through an OpenID provider."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse

from app.access.authenticator import bearer_secret
from app.access.cookie import COOKIE, require_same_site, set_cookie
from app.access.openid import CALLBACK_PATH, OpenId
from app.access.pending_login import LIFETIME_S
from app.api.dependencies import AccessDep, CallerDep, SettingsDep
from app.api.schemas.session import NewSession, SessionBody, SignedOut
from app.api.schemas.shape import problems
from app.errors import NotFound, Unauthenticated
from app.settings import Settings
from app.types import Principal

router = APIRouter(prefix="/v1/session", tags=["session"])

_LOGIN_COOKIE = "footnote_login"
_LOGIN_PATH = "/v1/session/oidc"
_LONGEST = 4096


@router.post("", status_code=201, summary="Sign in", responses=problems(422))
def sign_in(
    request: Request, response: Response, access: AccessDep, settings: SettingsDep, body: NewSession | None = None
) -> SessionBody:
    """With a key in the Authorization header or in the body. The session's secret is in an HttpOnly cookie.

    It lasts for the time the server sets, and never longer than its key.
    """
    require_same_site(request.headers)
    given = body.key.get_secret_value() if body is not None else None
    principal = access.keys.authenticate(given or bearer_secret(request.headers.get("authorization")))
    if principal is None:
        raise Unauthenticated("The API key is not valid.")
    session, secret = access.sessions.open(principal, with_key=True)
    _remember(request, response, settings, secret)
    return SessionBody.of(session, secret)


@router.get("", summary="Who is signed in", responses=problems())
def read_session(response: Response, access: AccessDep, caller: CallerDep) -> SessionBody:
    """The token that unsafe requests of this session need is in it."""
    response.headers["Cache-Control"] = "no-store"
    if not caller.by_cookie:
        return SessionBody.of_key(caller.principal)
    session = access.sessions.find(caller.secret)
    if session is None:
        raise Unauthenticated("The session is over.")
    return SessionBody.of(session, caller.secret)


@router.delete("", summary="Sign out", responses=problems(404))
def sign_out(
    request: Request, response: Response, access: AccessDep, settings: SettingsDep, caller: CallerDep
) -> SignedOut:
    """The session has ended, wherever its cookie may have gone."""
    if not caller.by_cookie:
        raise NotFound("This request has a key and no session.")
    access.sessions.end(caller.secret)
    _set(request, response, settings, COOKIE, "", path="/", seconds=0, same_site="Strict")
    return SignedOut(openid=access.openid is not None)


def provider(access: AccessDep) -> OpenId:
    """The OpenID provider.

    Raises:
        NotFound: None is set.
    """
    if access.openid is None:
        raise NotFound("Nobody signs in with OpenID here.")
    return access.openid


ProviderDep = Annotated[OpenId, Depends(provider)]


@router.get(
    "/oidc/login",
    status_code=303,
    response_class=RedirectResponse,
    summary="Sign in with OpenID",
    responses=problems(404, 422, 503),
)
def begin_login(
    request: Request,
    settings: SettingsDep,
    openid: ProviderDep,
    next_path: Annotated[
        str, Query(alias="next", max_length=_LONGEST, description="Where to go then: a path on this server.")
    ] = "/",
) -> RedirectResponse:
    """Sends the browser to the provider, which sends it back to the callback."""
    url, sealed = openid.begin(next_path=next_path, callback=_callback(request))
    response = RedirectResponse(url, status_code=303)
    # Lax: the provider's redirect brings it back, which is a request from another site
    _set(request, response, settings, _LOGIN_COOKIE, sealed, path=_path(request), seconds=LIFETIME_S, same_site="Lax")
    return response


@router.get(
    "/oidc/callback",
    status_code=303,
    response_class=RedirectResponse,
    summary="Come back from OpenID",
    responses=problems(404, 422, 503),
)
def finish_login(
    request: Request,
    access: AccessDep,
    settings: SettingsDep,
    openid: ProviderDep,
    login_state: Annotated[
        str, Query(alias="state", max_length=_LONGEST, description="What the provider was sent with the browser.")
    ] = "",
    code: Annotated[str, Query(max_length=_LONGEST, description="What the provider gives out tokens for.")] = "",
    error: Annotated[str, Query(max_length=_LONGEST, description="Why the provider signed nobody in.")] = "",
) -> RedirectResponse:
    """Sets the session cookie. Who signs in for the first time becomes a user of the tenant that the server sets."""
    if error or not code:
        raise Unauthenticated("The OpenID provider did not sign you in.")
    sealed = request.cookies.get(_LOGIN_COOKIE)
    identity = openid.finish(code=code, state=login_state, cookie=sealed, callback=_callback(request))
    tenant_id = openid.config.tenant_id
    user = access.users.identified(
        issuer=identity.issuer, subject=identity.subject, tenant_id=tenant_id, name=identity.name
    )
    principal = Principal(tenant_id=tenant_id, user_id=user.id, key_id="", role=identity.role)
    _, secret = access.sessions.open(principal, with_key=False)
    response = RedirectResponse(identity.next_path, status_code=303)
    _remember(request, response, settings, secret)
    _set(request, response, settings, _LOGIN_COOKIE, "", path=_path(request), seconds=0, same_site="Lax")
    return response


def _remember(request: Request, response: Response, settings: Settings, secret: str) -> None:
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
    """The login's routes as the browser sees them: behind a proxy they lie under its path."""
    return f"{request.scope.get('root_path', '')}{_LOGIN_PATH}"


def _callback(request: Request) -> str:
    return f"{str(request.base_url).rstrip('/')}{CALLBACK_PATH}"
