"""What holds for every test: how properties are judged, what is collected, and which tests one process runs."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

# By what they find, never by how long an example takes.
settings.register_profile("footnote", deadline=None)
settings.load_profile("footnote")

# A server that takes long to start, libraries that take long to import, a browser.
_SHARING = ("tests/e2e", "tests/ingestion", "tests/web")


@pytest.fixture(scope="module", autouse=True)
def collector_as_before() -> Iterator[None]:
    """Garbage is collected as before: a command turns that off, and an application that has loaded its models tells the
    collector to leave alone what is there, which here is all that tests have left behind, and for ever."""
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file's tests run in one process, so that what they share is made once, and so do those of some folders.

    Not by xdist's groups: it writes them into tests' ids, where pytest 9.2 does not see them.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return next((folder for folder in _SHARING if file.startswith(f"{folder}/")), file)

    return Together(config, log)
