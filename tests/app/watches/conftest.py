"""A desk with watches over the application without models."""

import pytest

from app.server.state import State
from tests.app.api.conftest import state
from tests.app.watches.desk import Desk

__all__ = ["desk", "state"]


@pytest.fixture
def desk(state: State) -> Desk:
    return Desk(state)
