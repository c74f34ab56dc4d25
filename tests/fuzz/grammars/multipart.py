"""Multipart uploads, whole and broken, sent to an application as raw bytes in any pieces.

Each gets an answer, none of 5xx; a refusal is a problem document; a stored file has exactly the bytes that were sent.
"""

import errno
import http.client
import json
import socket
from collections import Counter
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from hypothesis import strategies as st

from tests.fuzz.grammars.multipart_bodies import Form, broken_forms, forms
from tests.fuzz.target import Case, as_bytes, as_text, cut_up
from tests.server import ADMIN_KEY

_TIMEOUT_S = 60
_FILES, _DOCUMENTS = "/v1/files", "/v1/documents"
_NO_REQUEST = b"Invalid HTTP request received."
"""What uvicorn answers where bytes are no HTTP; no application sees them."""
_PURPOSE = {"purpose": "assistants"}
_cuts = st.lists(st.integers(0, 2000), max_size=4)


def _case(path: str, form: Form, cuts: list[int], framing: str) -> Case:
    file = None if form.file is None else as_text(form.file)
    body, content_type = as_text(form.body), as_text(form.content_type)
    return {"path": path, "type": content_type, "body": body, "cuts": cuts, "framing": framing, "file": file}


_whole = st.one_of(
    st.builds(_case, st.just(_FILES), forms(fields=_PURPOSE, text=False), _cuts, st.sampled_from(["length", "chunks"])),
    st.builds(_case, st.just(_DOCUMENTS), forms(fields={}, text=True), _cuts, st.sampled_from(["length", "chunks"])),
)
_broken = st.builds(
    _case,
    st.sampled_from([_FILES, _DOCUMENTS]),
    broken_forms(fields=_PURPOSE) | broken_forms(fields={}),
    _cuts,
    st.sampled_from(["length", "chunks", "too short", "too long"]),
)


class MultipartTarget:
    """Uploads sent to the application at an address."""

    name = "multipart"
    cases: st.SearchStrategy[Case] = st.one_of(_whole, _broken, _broken)

    def __init__(self, url: str) -> None:
        """`url` is where the application listens."""
        self.answers: Counter[tuple[str, int]] = Counter()
        address = urlsplit(url)
        self._address = (address.hostname or "", address.port or 80)

    def check(self, case: Case) -> None:
        """Send the case, and read back what was stored."""
        path, file = case["path"], case["file"]
        status, content_type, body = self._exchange("POST", path, case)
        if status is None:
            assert case["framing"] in {"too short", "too long"}, "the connection was closed without an answer"
            return
        assert status < 500, f"{status}: {body[:200]!r}"
        if status >= 400:
            assert file is None, f"a whole form is refused: {body[:200]!r}"
            if case["framing"] == "too long" and body == _NO_REQUEST:
                return  # the bytes behind the body came as a request of their own before this one was answered
            assert content_type == "application/problem+json", f"a refusal of type {content_type}: {body[:200]!r}"
            assert json.loads(body)["status"] == status
            return
        stored = self._stored(path, json.loads(body))
        if file is not None:
            assert stored == as_bytes(file), f"{len(stored)} bytes were stored of {len(file)} that were sent"
        else:
            assert stored in as_bytes(case["body"]), "the stored bytes stand nowhere in the body"

    def _stored(self, path: str, body: Any) -> bytes:
        kind = "content" if path == _FILES else "file"
        status, _, stored = self._exchange("GET", f"{path}/{body['id']}/{kind}", None)
        assert status == 200, f"the stored file cannot be read: {status}"
        return stored

    def _exchange(self, method: str, path: str, case: Case | None) -> tuple[int | None, str, bytes]:
        """Status, media type and body of the answer; no status where the connection is closed without one."""
        with socket.create_connection(self._address, timeout=_TIMEOUT_S) as connection:
            with suppress(ConnectionError):  # the answer may come, and the connection end, before all is sent
                for piece in _request(method, path, self._address[0], case):
                    connection.sendall(piece)
                if case is not None and case["framing"] == "too short":
                    _say_that_is_all(connection)
            response = http.client.HTTPResponse(connection, method=method)
            try:
                response.begin()
                body = response.read()
            except (ConnectionError, http.client.BadStatusLine):
                return None, "", b""
            operation = f"{method} {path if case is not None else path.rpartition('/')[0].rpartition('/')[0] + '/{id}'}"
            self.answers[operation, response.status] += 1
            return response.status, response.headers.get_content_type(), body


def _say_that_is_all(connection: socket.socket) -> None:
    """End the sending side; the server may have ended the connection already."""
    try:
        connection.shutdown(socket.SHUT_WR)
    except OSError as error:
        if error.errno != errno.ENOTCONN:
            raise


def _request(method: str, path: str, host: str, case: Case | None) -> list[bytes]:
    """The pieces of a request; those of a body lie between its cuts."""
    head = [f"{method} {path} HTTP/1.1", f"Host: {host}", f"Authorization: Bearer {ADMIN_KEY}", "Connection: close"]
    if case is None:
        return ["\r\n".join([*head, "", ""]).encode()]
    body, framing = as_bytes(case["body"]), case["framing"]
    pieces = cut_up(body, case["cuts"])
    if framing == "chunks":
        head.append("Transfer-Encoding: chunked")
        pieces = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces if piece] + [b"0\r\n\r\n"]
    else:
        more = {"too short": 7, "too long": -7}.get(framing, 0)  # bytes that are declared and not sent
        head.append(f"Content-Length: {max(0, len(body) + more)}")
    lines = "\r\n".join([*head, ""]).encode() + b"Content-Type: " + as_bytes(case["type"]) + b"\r\n\r\n"
    return [lines, *pieces]
