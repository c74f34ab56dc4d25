"""The web page is public, contains no tenant's data and loads nothing from other hosts."""

import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

_BUILT = Path(__file__).parents[3] / "app" / "web" / "dist"


def test_the_page_needs_no_key_and_is_asked_for_each_time(client: TestClient) -> None:
    page = client.get("/", headers={"Authorization": ""})

    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["cache-control"] == "no-cache"
    policy = page.headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "style-src 'self';" in policy


def test_every_asset_of_the_page_is_served_and_cached_as_immutable(client: TestClient) -> None:
    named = re.findall(r'(?:src|href)="\./([^"]+)"', client.get("/").text)

    assert any(name.endswith(".js") for name in named)
    for name in named:
        answer = client.get(f"/{name}", headers={"Authorization": ""})
        assert answer.status_code == 200, name
        if name.startswith("assets/"):
            assert "immutable" in answer.headers["cache-control"]


@pytest.mark.parametrize("ending", ["js", "css"])
def test_assets_that_shrink_are_sent_compressed_to_whoever_takes_that(client: TestClient, ending: str) -> None:
    name = next(
        name for name in re.findall(r'(?:src|href)="\./([^"]+)"', client.get("/").text) if name.endswith(ending)
    )
    whole = (_BUILT / name).read_bytes()
    packed = client.get(f"/{name}", headers={"Accept-Encoding": "br, gzip;q=0.8"})
    plain = client.get(f"/{name}", headers={"Accept-Encoding": "gzip;q=0"})
    part = client.get(f"/{name}", headers={"Accept-Encoding": "gzip", "Range": "bytes=0-9"})

    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < len(whole)
    assert packed.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"
    assert packed.headers["content-type"] == plain.headers["content-type"]
    assert "immutable" in packed.headers["cache-control"]
    assert packed.content == plain.content == whole
    assert "content-encoding" not in plain.headers
    assert (part.status_code, part.content) == (206, whole[:10])


def test_the_built_page_loads_nothing_from_other_hosts() -> None:
    """Addresses in libraries' messages and namespaces are not asked for; what a page loads begins at these places."""
    page = (_BUILT / "index.html").read_text(encoding="utf-8")
    sheets = "".join(sheet.read_text(encoding="utf-8") for sheet in (_BUILT / "assets").glob("*.css"))

    assert "//" not in page.replace("<!doctype", "")
    assert "<style" not in page
    assert re.search(r"<script(?![^>]*\ssrc=)", page) is None, "no inline script"
    assert re.search(r"""url\(["']?(?:https?:)?//""", sheets) is None
    assert "@import" not in sheets


@pytest.mark.parametrize("path", ["../index.html", "%2e%2e/%2e%2e/main.py", "..%2f..%2fmain.py", "none.js", ""])
def test_other_paths_below_assets_are_not_served(client: TestClient, path: str) -> None:
    answer = client.get(f"/assets/{path}")

    assert answer.status_code in {404, 405}, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
