"""A planted fault is found, kept as a small seed, found again from the seed alone, and gone once it is mended."""

import http.server
import json
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from tests.fuzz.campaign import Campaign
from tests.fuzz.grammar_campaign import hunt_one
from tests.fuzz.grammars.multipart import MultipartTarget
from tests.fuzz.seeds_kept import keep_seed, kept_seeds, kept_targets
from tests.fuzz.target import Case, hunt, tried_once


class Service(http.server.ThreadingHTTPServer):
    """Keeps the files of multipart forms; while `broken` it takes white space off their ends, as some readers do."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.broken = True
        self.kept: dict[str, bytes] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Service

    def do_POST(self) -> None:
        body = self._body()
        _, found, after = body.partition(b'name="file"')
        if not found or b"\r\n\r\n" not in after:
            self._answer(400, json.dumps({"status": 400}).encode(), "application/problem+json")
            return
        boundary = self.headers["Content-Type"].partition("boundary=")[2].strip('"')
        file = after.partition(b"\r\n\r\n")[2].partition(b"\r\n--" + boundary.encode("latin-1"))[0]
        name = str(len(self.server.kept))
        self.server.kept[name] = file.strip() if self.server.broken else file
        self._answer(200, json.dumps({"id": name}).encode(), "application/json")

    def do_GET(self) -> None:
        self._answer(200, self.server.kept[self.path.split("/")[-2]], "application/octet-stream")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        """Print nothing."""

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers["Content-Length"]))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        return body

    def _answer(self, status: int, body: bytes, content_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as service:
        thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield service
        service.shutdown()
        thread.join()


def test_a_planted_fault_is_kept_as_a_seed_that_fails_until_it_is_mended(service: Service, tmp_path: Path) -> None:
    target = MultipartTarget(service.url)

    fault = hunt(target, seed=1, examples=300).fault
    assert fault is not None
    path = keep_seed(fault, folder=tmp_path)

    assert path.stat().st_size < 2000, "the case was made small"
    ((name, case),) = kept_seeds("multipart", folder=tmp_path).items()
    assert name == path.name
    again = tried_once(target, case)
    assert again is not None
    assert "bytes were stored" in again.said
    service.broken = False
    assert tried_once(target, case) is None
    service.broken = True
    assert tried_once(target, case) is not None, "the fault is back"


class NumberTarget:
    """Numbers, of which those from 1000 on are broken."""

    name = "numbers"
    cases: st.SearchStrategy[Case] = st.fixed_dictionaries({"number": st.integers(0, 10_000)})

    def __init__(self, *, broken: bool) -> None:
        self.answers: Counter[tuple[str, int]] = Counter({("GET /numbers", 200): 7})
        self._broken = broken

    def check(self, case: Case) -> None:
        assert not self._broken or case["number"] < 1000, f"{case['number']} is too large"


def test_a_campaign_keeps_what_fails_and_tries_it_again_before_anything_else(tmp_path: Path) -> None:
    found, later, mended = Campaign(), Campaign(), Campaign()

    hunt_one(NumberTarget(broken=True), found, seed=1, examples=200, folder=tmp_path)
    assert kept_targets(folder=tmp_path) == {"numbers"}
    assert [*kept_seeds("numbers", folder=tmp_path).values()] == [{"number": 1000}]
    ((_, _, said),) = found.broken
    assert said == "AssertionError: 1000 is too large"
    assert str(tmp_path) in next(iter(found.broken.values())).curl
    assert found.by_phase == {"grammars": 7}
    assert found.requests == 7

    hunt_one(NumberTarget(broken=True), later, seed=1, examples=1, folder=tmp_path)
    assert [one.said for one in later.broken.values()] == [said], "the one new case was fine"
    hunt_one(NumberTarget(broken=False), mended, seed=1, examples=50, folder=tmp_path)
    assert mended.broken == {}
    assert mended.cases["numbers"] == 51


def test_a_grammar_that_fails_itself_is_no_fault_of_a_case() -> None:
    class Unmakeable(NumberTarget):
        cases: st.SearchStrategy[Case] = st.nothing()

    with pytest.raises(Exception, match="nothing"):
        hunt(Unmakeable(broken=True), seed=1, examples=5)
