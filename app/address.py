"""Where this server is found, as its own settings have it: what a browser on this machine opens."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.settings import Settings

_EVERYWHERE = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - a name for them, nothing is bound


def address_of(settings: "Settings", *, port: int | None = None) -> str:
    """The address without a slash at its end; `port` where another one was taken than the settings name."""
    named = f"[{settings.host}]" if ":" in settings.host else settings.host
    scheme = "http" if settings.tls_cert is None else "https"
    return f"{scheme}://{_EVERYWHERE.get(settings.host, named)}:{settings.port if port is None else port}"
