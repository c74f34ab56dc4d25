"""Clients of applications that are used again: making the routes of one takes a fifth of a second, many times a run."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from fastapi.testclient import TestClient

from app.api.application import create_app
from app.server.state import State


class _Application:
    """An application whose lifespan begins with the state that it is given by then."""

    def __init__(self, version: str) -> None:
        self.state: State | None = None
        self.app = create_app(self._begun, version=version)

    def _begun(self) -> AbstractContextManager[State]:
        assert self.state is not None, "a client sets it"
        return nullcontext(self.state)


class ReusingClient(TestClient):
    """A client of an application over `state`, which another client gets when this one's `with` statement has ended.

    >>> with ReusingClient(state) as client:
    ...     client.get("/healthz")
    """

    _free: list[_Application] = []  # noqa: RUF012 - shared by all clients of the process

    def __init__(self, state: State, **options: Any) -> None:
        self._served = self._free.pop() if self._free else _Application(state.serving.version)
        self._served.state = state
        super().__init__(self._served.app, **options)

    def __exit__(self, *raised: Any) -> None:
        """End the lifespan, and leave the application to the next client."""
        super().__exit__(*raised)
        self._served.state = None
        self._free.append(self._served)
