"""Serves the web page: a prebuilt HTML file and its assets."""

import gzip
from collections.abc import Mapping
from pathlib import Path

import anyio
from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import FileResponse, RedirectResponse
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from app.api.root_path import is_bare_prefix
from app.errors import NotFound

BUILT = Path(__file__).parents[1] / "web" / "dist"
"""The folder that the built page is served from."""
_COMPRESSED = frozenset({".js", ".mjs", ".css", ".wasm", ".ttf"})
_A_YEAR = "public, max-age=31536000, immutable"
# A worker has the policy of its own file. The PDF worker decodes images with WebAssembly.
_PDF_WORKER = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'"

router = APIRouter(include_in_schema=False)


@router.get("/", response_class=FileResponse)
def read_page(request: Request) -> Response:
    """The page; browsers revalidate it each time (RFC 9111, section 5.2.2.4).

    Its links are relative, so below a proxy's prefix its address must end with a slash.

    Raises:
        NotFound: The page was not built.
    """
    if is_bare_prefix(request.scope):
        return RedirectResponse(f"{request.scope['root_path']}/", status_code=308)
    return _file("index.html")


@router.get("/icon.svg", response_class=FileResponse)
def read_icon() -> FileResponse:
    """The icon of the page."""
    return _file("icon.svg")


def serve_assets(app: FastAPI) -> None:
    """Serve the assets of the page, cached for a year: a file's name changes with its content."""
    app.mount("/assets", _Assets(directory=BUILT / "assets", check_dir=False))


class _Assets(StaticFiles):
    """The assets; those that shrink are compressed when they are first asked for, and kept compressed."""

    def __init__(self, *, directory: Path, check_dir: bool) -> None:
        super().__init__(directory=directory, check_dir=check_dir)
        self._compressed: dict[Path, bytes] = {}

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        if isinstance(response, FileResponse) and Path(path).suffix in _COMPRESSED:
            response.headers["Vary"] = "Accept-Encoding"
            if scope["method"] == "GET" and _takes_gzip(Headers(scope=scope)):
                response = await self._gzip(Path(response.path), response.headers)
        response.headers["Cache-Control"] = _A_YEAR
        if Path(path).name.startswith("pdf.worker"):
            response.headers["Content-Security-Policy"] = _PDF_WORKER
        return response

    async def _gzip(self, file: Path, headers: Mapping[str, str]) -> Response:
        body = self._compressed.get(file)
        if body is None:
            body = await anyio.to_thread.run_sync(lambda: gzip.compress(file.read_bytes(), mtime=0))
            self._compressed[file] = body
        kept = {name: headers[name] for name in ("content-type", "last-modified", "vary") if name in headers}
        return Response(body, headers={**kept, "Content-Encoding": "gzip"})


def _takes_gzip(headers: Headers) -> bool:
    """Whether a client takes gzip (RFC 9110, section 12.5.3) and asks for the whole file."""
    if "range" in headers:
        return False
    for part in headers.get("accept-encoding", "").split(","):
        name, _, weight = part.strip().partition(";")
        if name.strip().lower() == "gzip":
            return weight.replace(" ", "").lower() not in {"q=0", "q=0.0", "q=0.00", "q=0.000"}
    return False


def _file(name: str) -> FileResponse:
    path = BUILT / name
    if not path.is_file():
        raise NotFound("The web page was not built; the API is at /docs.")
    return FileResponse(path, headers={"Cache-Control": "no-cache"})
