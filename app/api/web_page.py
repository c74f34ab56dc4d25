"""Serves the web page: a prebuilt HTML file and its assets."""

from pathlib import Path

from fastapi import APIRouter, FastAPI
from fastapi.responses import FileResponse
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from app.errors import NotFound

BUILT = Path(__file__).parents[1] / "web" / "dist"
"""The folder that the built page is served from."""
_A_YEAR = "public, max-age=31536000, immutable"
# A worker has the policy of its own file. The PDF worker decodes images with WebAssembly.
_PDF_WORKER = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'"

router = APIRouter(include_in_schema=False)


@router.get("/", response_class=FileResponse)
def read_page() -> FileResponse:
    """The page; browsers revalidate it each time (RFC 9111, section 5.2.2.4).

    Raises:
        NotFound: The page was not built.
    """
    return _file("index.html")


@router.get("/icon.svg", response_class=FileResponse)
def read_icon() -> FileResponse:
    """The icon of the page."""
    return _file("icon.svg")


def serve_assets(app: FastAPI) -> None:
    """Serve the assets of the page, cached for a year: a file's name changes with its content."""
    app.mount("/assets", _Assets(directory=BUILT / "assets", check_dir=False))


class _Assets(StaticFiles):
    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = _A_YEAR
        if Path(path).name.startswith("pdf.worker"):
            response.headers["Content-Security-Policy"] = _PDF_WORKER
        return response


def _file(name: str) -> FileResponse:
    path = BUILT / name
    if not path.is_file():
        raise NotFound("The web page was not built; the API is at /docs.")
    return FileResponse(path, headers={"Cache-Control": "no-cache"})
