"""The API's bodies as TypeScript types: `python -m tests.web.contract` writes what `npm run types` makes them from."""

import json
from pathlib import Path

from app.api.application import create_app
from app.server.state import State

WEB = Path(__file__).parents[2] / "app" / "web"


def bodies() -> str:
    """The OpenAPI document without its routes: the page's types are its bodies."""

    def nothing() -> State:
        raise AssertionError("nothing is served")

    described = create_app(nothing, version="0").openapi()  # type: ignore[arg-type]
    return json.dumps({**described, "paths": {}}, indent=1)


if __name__ == "__main__":
    (WEB / "openapi.json").write_text(bodies(), encoding="utf-8")
