"""An office with tables over the application without models."""

import pytest

from app.server.state import State
from tests.app.answer_tables.office import Office
from tests.app.api.conftest import state

__all__ = ["office", "state"]


@pytest.fixture
def office(state: State) -> Office:
    return Office(state)
