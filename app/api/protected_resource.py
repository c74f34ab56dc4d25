"""The description of access to /mcp: the metadata of the protected resource (RFC 9728), and the challenge.

A client that is refused with 401 reads the metadata, and finds the authorization server to sign its user in at. It asks
there for an access token for the resource (RFC 8707).
"""

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.types import Scope

from app.api.dependencies import AccessDep, SettingsDep
from app.api.schemas.shape import ResponseBody
from app.server.state import AccessState

PATH = "/mcp"
"""The path of the resource."""

METADATA_PATH = "/.well-known/oauth-protected-resource"
"""The path of its metadata (RFC 9728, section 3); it is also served below the path of the resource."""

router = APIRouter(tags=["mcp"])


class ProtectedResource(ResponseBody):
    """Metadata of a protected resource (RFC 9728, section 2)."""

    resource: str = Field(description="The address of the resource, which is the audience of tokens for it.")
    resource_name: str = Field(default="Footnote", description="Its name for people.")
    bearer_methods_supported: list[str] = Field(default=["header"], description="How a token or key is sent.")
    authorization_servers: list[str] | None = Field(
        default=None, description="The provider whose tokens are accepted; missing where keys alone are."
    )


@router.get(METADATA_PATH, include_in_schema=False, response_model_exclude_none=True)
@router.get(f"{METADATA_PATH}{PATH}", include_in_schema=False, response_model_exclude_none=True)
async def protected_resource(request: Request, access: AccessDep, settings: SettingsDep) -> ProtectedResource:
    """The address of /mcp, and the authorization server whose access tokens it accepts."""
    tokens = access.provider_tokens
    return ProtectedResource(
        resource=settings.mcp_url or f"{_base_of(request)}{PATH}",
        authorization_servers=None if tokens is None else [tokens.issuer],
    )


def challenge(scope: Scope, access: AccessState) -> str:
    """The `WWW-Authenticate` of a refusal of /mcp, which names the metadata (RFC 9728, section 5.1).

    Example:
        >>> challenge(request.scope, state.access)
        'Bearer resource_metadata="https://footnote.example.org/.well-known/oauth-protected-resource"'
    """
    tokens = access.provider_tokens
    base = _base_of(Request(scope)) if tokens is None else tokens.resource.removesuffix(PATH)
    if any(character in base for character in '"\\') or not base.isascii():
        return "Bearer"  # a host that is none: the header would not be one
    return f'Bearer resource_metadata="{base}{METADATA_PATH}"'


def _base_of(request: Request) -> str:
    """The address that the client used, with a proxy's prefix and without a slash at its end."""
    return str(request.base_url).rstrip("/")
