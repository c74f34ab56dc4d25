"""Sends an original file as an attachment."""

from contextlib import AbstractContextManager
from pathlib import Path

from anyio import to_thread
from fastapi.responses import FileResponse
from starlette.types import Receive, Scope, Send

from app.documents.ports import ObjectName, Originals

_HEADERS = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox"}


class OriginalResponse(FileResponse):
    """An original, whole or the ranges that the client asks for. Its local copy is held until it is sent."""

    def __init__(
        self, path: Path, held: AbstractContextManager[Path], *, filename: str, media_type: str | None
    ) -> None:
        """`held` is the entered context of `Originals.local_copy` that gave `path`."""
        super().__init__(path, filename=filename, media_type=media_type, headers=_HEADERS)
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            await to_thread.run_sync(self._held.__exit__, None, None, None)


def original_response(
    originals: Originals, name: ObjectName | None, *, filename: str, media_type: str | None
) -> OriginalResponse | None:
    """The response with an original; None when it does not exist.

    Raises:
        StorageFull, StoreUnavailable: It cannot be read.
    """
    if name is None:
        return None
    held = originals.local_copy(name)
    try:
        path = held.__enter__()
    except FileNotFoundError:
        return None
    return OriginalResponse(path, held, filename=filename, media_type=media_type)
