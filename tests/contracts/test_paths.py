"""What judges a request and what routes it see the same path: one module settles it, before everything else."""

import re
from pathlib import Path

import pytest

from app.api.application import create_app
from app.api.root_path import RootPath

ROOT = Path(__file__).resolve().parents[2]
SETTLES = ROOT / "app/api/root_path.py"
UNSETTLED = re.compile(r"""scope(?:\[|\.get\()["'](?:raw_)?path["']|\.url\.(?:raw_)?path|get_route_path""")


def test_the_path_is_settled_before_any_other_middleware_runs():
    app = create_app(lambda: pytest.fail("nothing is served"), version="0", root_path="/footnote")
    kinds: list[object] = [each.cls for each in app.user_middleware]  # the outermost first

    assert kinds[0] is RootPath
    assert kinds.count(RootPath) == 1
    assert app.user_middleware[0].kwargs == {"prefix": "/footnote"}
    assert app.root_path == "", "FastAPI would set it on every request, before the path is settled"
    assert not app.router.redirect_slashes, "a redirect would name the host that the request names"


def test_nothing_else_of_the_application_reads_the_path_of_a_request():
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for folder in ("app/api", "app/access", "app/admission", "app/server")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path != SETTLES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if UNSETTLED.search(line)
    ]

    assert found == []
