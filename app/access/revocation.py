"""Long answers to whoever may no longer have them: they stop."""

from starlette.datastructures import Headers
from starlette.types import Message, Scope, Send

from app.access.authenticator import Authenticator, Caller
from app.errors import Unauthenticated


class NoLongerAllowed(Exception):
    """The caller's key or session has ended while an answer was sent; the connection is closed."""


def while_allowed(send: Send, authenticator: Authenticator, scope: Scope) -> Send:
    """`send`, that sends nothing more of a GET's answer once its caller's key or session has changed.

    Exports and files may take longer than a key lives. Event streams look for themselves, so that they can say why
    they end. An answer that is being generated may finish: it was asked for, and is paid for, while the key was good.
    """
    caller: Caller | None = scope["state"].get("caller")
    if caller is None or scope["method"] != "GET":
        return send
    checking = begun = False

    async def checked(message: Message) -> None:
        nonlocal checking, begun
        if message["type"] == "http.response.start":
            media_type = Headers(raw=message["headers"]).get("content-type", "")
            checking = not media_type.startswith("text/event-stream")
        elif checking and begun:
            try:
                await authenticator.recheck(caller)
            except Unauthenticated:
                raise NoLongerAllowed from None
        else:
            begun = True
        await send(message)

    return checked
