"""Every route that is open without a key is limited by client address, whichever routes these are."""

from contextlib import nullcontext
from pathlib import Path

import pytest
from fastapi.routing import iter_route_contexts
from fastapi.testclient import TestClient
from starlette.routing import Mount

from app.access.routes import RouteReach, rule_for
from app.api.application import create_app
from app.server.bootstrap import build
from app.settings import Settings
from tests.app.api.conftest import ADMIN_KEY
from tests.installation import installed


def public_routes() -> list[tuple[str, str]]:
    """Method and path of every route that the route table opens to requests without a key."""
    application = create_app(lambda: pytest.fail("nothing is served"), version="0")
    routes = []
    for route in iter_route_contexts(application.routes):
        if isinstance(route.original_route, Mount):
            routes.append(("GET", f"{route.path}/invented"))
        else:
            routes += [(method, str(route.path)) for method in route.methods or ()]
    return sorted({route for route in routes if rule_for(*route).reach is RouteReach.PUBLIC})


def test_every_public_route_is_limited_by_address(tmp_path: Path) -> None:
    data_dir = installed(tmp_path / "data")
    settings = Settings(data_dir=data_dir, admin_key=ADMIN_KEY, public_requests_per_minute=1, _env_file=None)
    routes = public_routes()
    assert {("GET", "/healthz"), ("GET", "/assets/invented"), ("POST", "/v1/session")} <= set(routes)

    with build(settings, with_models=False) as state:
        app = create_app(lambda: nullcontext(state), version="0")
        with TestClient(app):
            for number, (method, path) in enumerate(routes):
                client = TestClient(app, client=(f"192.0.2.{number}", 1), follow_redirects=False)
                first, second = client.request(method, path), client.request(method, path)

                assert first.status_code != 429, (method, path)
                assert second.status_code == 429, (method, path)
                assert int(second.headers["retry-after"]) >= 1
                if method != "HEAD":
                    assert second.json()["limit_name"] == "public-requests"
            with_key = TestClient(app, client=("192.0.2.1", 1), headers={"Authorization": f"Bearer {ADMIN_KEY}"})
            assert with_key.get("/v1/collections").status_code == 200, (
                "an address without requests left may use its key"
            )
