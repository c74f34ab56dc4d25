"""The start does without the protocol's package, and so does a server where it is not installed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="the extra `mcp`")

from tests.installation import installed
from tests.server import ADMIN_KEY

ROOT = Path(__file__).resolve().parents[4]
SERVING = """
import json, sys
from contextlib import nullcontext
from pathlib import Path
from fastapi.testclient import TestClient
from app.api.application import create_app
from app.server.bootstrap import build
from app.settings import Settings

data_dir, key = sys.argv[1:]
settings = Settings(data_dir=Path(data_dir), admin_key=key, _env_file=None)
headers = {"Authorization": f"Bearer {key}", "Accept": "application/json"}
with build(settings, with_models=False) as state:
    app = create_app(lambda: nullcontext(state), version="0")
    with TestClient(app) as http:
        health = http.get("/healthz").status_code
        loaded = sorted(name for name in sys.modules if name.partition(".")[0] in {"mcp", "mcp_types"})
        sys.modules["mcp"] = None  # as where it is not installed
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        refused = http.post("/mcp", json=message, headers=headers)
print(json.dumps([health, loaded, refused.status_code, refused.json()["detail"]]), file=sys.stderr)
"""


def test_the_package_is_imported_by_the_first_request_and_its_absence_is_told(tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", SERVING, str(installed(tmp_path / "data")), ADMIN_KEY]
    ended = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)

    assert ended.returncode == 0, ended.stderr[-2000:]
    assert json.loads(ended.stderr.splitlines()[-1]) == [
        200,
        [],
        503,
        "This server does not speak MCP: install footnote-rag[mcp].",
    ]
