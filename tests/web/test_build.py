"""The committed page and its TypeScript types equal what its source and the API generate."""

import shutil
import subprocess
from filecmp import dircmp
from pathlib import Path

import pytest

from app.api import web_page
from tests.web.contract import WEB, bodies

_TOOLS = WEB / "node_modules" / ".bin"

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or not (_TOOLS / "vite").exists(),
    reason="node or app/web/node_modules is not there: run `npm install --no-save` in app/web",
)


def run(tool: str, *arguments: str, given: str | None = None) -> str:
    done = subprocess.run(
        [str(_TOOLS / tool), *arguments], cwd=WEB, input=given, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def differences(found: "dircmp[str]") -> list[str]:
    """Names that are in one of two folders, or in both with other contents."""
    inner = [name for sub in found.subdirs.values() for name in differences(sub)]
    return [*found.left_only, *found.right_only, *found.diff_files, *found.funny_files, *inner]


def test_the_committed_page_is_built_from_its_source(tmp_path: Path) -> None:
    run("vite", "build", "--outDir", str(tmp_path / "dist"), "--emptyOutDir", "--logLevel", "error")

    assert differences(dircmp(tmp_path / "dist", web_page.BUILT)) == [], "run `make web`"


def test_the_committed_typescript_types_match_the_openapi_document(tmp_path: Path) -> None:
    (tmp_path / "openapi.json").write_text(bodies(), encoding="utf-8")
    made = tmp_path / "schema.d.ts"
    run("openapi-typescript", str(tmp_path / "openapi.json"), "--output", str(made), "--root-types=false")
    formatted = run("biome", "format", "--stdin-file-path=src/api/schema.d.ts", given=made.read_text(encoding="utf-8"))

    assert formatted == (WEB / "src" / "api" / "schema.d.ts").read_text(encoding="utf-8"), "run `make web`"
