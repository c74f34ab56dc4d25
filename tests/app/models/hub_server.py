"""A small Hugging Face hub, spoken to by the real client: models at one commit, with files that can be had in parts."""

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Hub:
    """What the server has, and what it was asked.

    `lies` are files whose content differs from what the hub says of them; `cut` are files that break off once, after
    so many bytes; `missing` are files that it lists and does not send; `held` are files of which half is sent
    before the event.
    """

    url: str
    licence: str | None = "apache-2.0"
    files: dict[str, bytes] = field(default_factory=dict)
    lies: dict[str, bytes] = field(default_factory=dict)
    cut: dict[str, int] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)
    held: dict[str, threading.Event] = field(default_factory=dict)
    status: int = 200
    error: str = ""
    sent: list[tuple[str, int]] = field(default_factory=list)
    """Each file that was sent, and the byte from which on."""

    def described(self, name: str) -> Mapping[str, Any]:
        siblings = []
        for file, content in self.files.items():
            one: dict[str, Any] = {"rfilename": file, "size": len(content), "blobId": git_sha1(content)}
            if is_large(file):
                one["lfs"] = {"sha256": sha256(content), "size": len(content), "pointerSize": 130}
            siblings.append(one)
        card = {} if self.licence is None else {"license": self.licence}
        return {
            "_id": "1",
            "id": name,
            "modelId": name,
            "sha": COMMIT,
            "siblings": siblings,
            "cardData": card,
            "tags": [],
        }

    def tree(self) -> list[Mapping[str, Any]]:
        return [
            {"type": "file", "path": file, "size": len(content), "oid": git_sha1(content)}
            | ({"lfs": {"oid": sha256(content), "size": len(content), "pointerSize": 130}} if is_large(file) else {})
            for file, content in self.files.items()
        ]


def is_large(file: str) -> bool:
    return PurePosixPath(file).suffix == ".safetensors"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def git_sha1(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0%s" % (len(content), content), usedforsecurity=False).hexdigest()


@contextmanager
def serving_hub() -> Iterator[Hub]:
    """Serve a hub on a port of its own until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.answer(body=False)

        def do_GET(self) -> None:
            self.answer(body=True)

        def answer(self, *, body: bool) -> None:
            path = unquote(urlsplit(self.path).path).strip("/")
            if hub.status != 200:
                self.reply(b"{}", {"X-Error-Code": hub.error}, status=hub.status, body=body)
            elif path.startswith("api/models/"):
                name = "/".join(path.split("/")[2:4])
                found = hub.tree() if "/tree/" in path else hub.described(name)
                self.reply(json.dumps(found).encode(), {"Content-Type": "application/json"}, body=body)
            else:
                self.file(path.split(f"/resolve/{COMMIT}/", 1)[-1], body=body)

        def file(self, name: str, *, body: bool) -> None:
            if name not in hub.files or name in hub.missing:
                self.reply(b"", {"X-Error-Code": "EntryNotFound"}, status=404, body=body)
                return
            content = hub.lies.get(name, hub.files[name])
            etag = sha256(hub.files[name]) if is_large(name) else git_sha1(hub.files[name])
            headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{etag}"', "Accept-Ranges": "bytes"}
            asked = self.headers.get("Range", "")
            start = int(asked.removeprefix("bytes=").split("-")[0]) if asked.startswith("bytes=") else 0
            if start:
                headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
            if body:
                hub.sent.append((name, start))
            end = hub.cut.pop(name, len(content)) if body else len(content)
            self.reply(
                content[start:],
                headers,
                status=206 if start else 200,
                body=body,
                sent=end - start,
                held=hub.held.get(name),
            )

        def reply(
            self,
            content: bytes,
            headers: Mapping[str, str],
            *,
            status: int = 200,
            body: bool,
            sent: int | None = None,
            held: threading.Event | None = None,
        ) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            if body and held is not None:
                self.wfile.write(content[: len(content) // 2])
                self.wfile.flush()
                held.wait()
                content, sent = content[len(content) // 2 :], None
            if body:
                self.wfile.write(content[:sent])
            if sent is not None and sent < len(content):
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub = Hub(url=f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
