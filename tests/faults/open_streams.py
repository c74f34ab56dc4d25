"""A stream of events that is read in the background, and what the ledger says afterwards."""

import json
import threading
from pathlib import Path
from typing import Any

import httpx
import sqlalchemy as sa

from app.db.session import Database
from app.db.tables.ledger import usage_event
from tests.faults.forked import ForkedServer


class OpenStream:
    """One streamed request to a server, read to its end by a thread."""

    def __init__(self, server: ForkedServer, path: str, body: dict[str, Any]) -> None:
        self._http = httpx.Client(
            base_url=server.http.base_url, headers=server.http.headers, timeout=60, trust_env=False
        )
        self._path, self._body = path, body
        self._lines: list[str] = []
        self._text = threading.Event()
        self._cut: Exception | None = None
        self._status = 0
        self.request_id = ""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def wait_for_text(self) -> None:
        """Until words have come."""
        assert self._text.wait(30), f"no words came: {self._lines}"

    def last_event(self) -> str:
        """The name of the last event, once the stream has ended as HTTP says it must."""
        return [line.removeprefix("event: ") for line in self._whole() if line.startswith("event: ")][-1]

    def last_data(self) -> dict[str, Any]:
        """The data of the last event, likewise."""
        data = [line.removeprefix("data: ") for line in self._whole() if line.startswith("data: ")]
        body: dict[str, Any] = json.loads(data[-1])
        return body

    def outcome(self) -> str:
        """The last event's name; `refused` where no stream was begun, `cut` where it ended in silence."""
        self._thread.join(60)
        if self._status not in {0, 200}:
            return "refused"
        if self._cut is not None or self._thread.is_alive():
            return "cut"
        return self.last_event()

    def close(self) -> None:
        """Its connection is closed, which a server that ended did not do."""
        self._thread.join(60)
        self._http.close()

    def _whole(self) -> list[str]:
        self._thread.join(60)
        assert not self._thread.is_alive(), "the stream goes on"
        assert self._cut is None, f"it was cut: {self._cut!r}"
        return self._lines

    def _read(self) -> None:
        try:
            with self._http, self._http.stream("POST", self._path, json=self._body) as response:
                self._status = response.status_code
                self.request_id = response.headers["x-request-id"]
                for line in response.iter_lines():
                    self._lines.append(line)
                    if '"text":' in line or '"content": "a' in line:
                        self._text.set()
        except httpx.HTTPError as error:
            self._cut = error


def rows_of(data_dir: Path) -> list[Any]:
    """The ledger's rows, of a server that has ended."""
    database = Database.open(f"sqlite:///{data_dir / 'footnote.db'}")
    try:
        with database.read() as connection:
            return list(connection.execute(sa.select(usage_event).order_by(usage_event.c.accepted_at)))
    finally:
        database.close()
