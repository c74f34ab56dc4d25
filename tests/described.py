"""The OpenAPI document of the application, made once for all tests of a process: it takes seconds."""

from functools import cache
from typing import Any

import pytest

from app.api.application import create_app


@cache
def openapi_document() -> dict[str, Any]:
    """The document, which tests read and never change."""
    document: dict[str, Any] = create_app(lambda: pytest.fail("nothing is served"), version="0").openapi()
    return document
