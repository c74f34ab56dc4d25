"""One application for the tests of receipts: each asks its own questions."""

from collections.abc import Iterator

import pytest

from tests.app.receipts.receipted import Receipted, receipted


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receipted]:
    with receipted(tmp_path_factory.mktemp("receipted") / "data") as served:
        served.upload()
        yield served
