"""Configures the suite: isolation from the machine, the exhaustive tests, Hypothesis, and what xdist runs together."""

import gc
import itertools
import os
from collections import Counter
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import settings

from tests.root_log import log_put_back

# Variables that change what commands print or where they find things; the suite must not depend on the caller's.
_OF_THE_CALLER = {"FORCE_COLOR", "GITHUB_ACTIONS", "NO_COLOR", "NOTIFY_SOCKET", "PY_COLORS", "TERMINAL_WIDTH"}
# Where the fetched models lie, and what tests and benchmarks are told.
_KEPT = ("FOOTNOTE_MODELS_DIR", "FOOTNOTE_TEST_", "FOOTNOTE_BENCH_")
for _name in [*os.environ]:
    if _name in _OF_THE_CALLER or (_name.startswith("FOOTNOTE_") and not _name.startswith(_KEPT)):
        del os.environ[_name]

# Torch's threads spin while they wait for each other, which takes the processor from other workers and their servers: a
# server's start took nearly twice the processor's time (docs/EXPERIMENTS.md, 2026-11-29). No number changes by it.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# A deadline per example would measure the machine, not the code.
settings.register_profile("quick", deadline=None, max_examples=50)
settings.register_profile("exhaustive", deadline=None)
settings.load_profile("quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--exhaustive`."""
    parser.addoption(
        "--exhaustive",
        action="store_true",
        help="also run the tests marked `exhaustive`, and Hypothesis with its usual number of examples",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Choose how many examples Hypothesis tries, and keep the order of `pytest_collection_modifyitems`."""
    if config.getoption("exhaustive"):
        settings.load_profile("exhaustive")
    config.option.loadscopereorder = False


# Few tests that take minutes: last, they would run alone.
_LONGEST = ("tests/fuzz/test_grammars.py", "tests/scale/test_dead_workers.py", "tests/golden/test_golden_answers.py")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while tests are collected, which leave none: half of the time goes into looking for it.

    What is loaded then is left out of every later collection.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests marked `exhaustive`, except with `--exhaustive` or where `-m` names the mark."""
    sizes = Counter(_scope(item.nodeid) for item in items)
    # as xdist orders them, and stable: a file's tests stay in their order
    items.sort(key=lambda item: (not item.nodeid.startswith(_LONGEST), -sizes[_scope(item.nodeid)]))
    if config.getoption("exhaustive") or "exhaustive" in config.getoption("markexpr"):
        return
    left_out = [item for item in items if item.get_closest_marker("exhaustive") is not None]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.get_closest_marker("exhaustive") is None]


def _scope(nodeid: str) -> str:
    """What runs in one process: a file, or a folder of `_SHARING`."""
    file = nodeid.partition("::")[0]
    return next((folder for folder in _SHARING if file.startswith(f"{folder}/")), file)


@pytest.fixture(scope="session", autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Run the tests in an empty folder, where no `.env` lies, with a data folder of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data-home")))
        patch.chdir(tmp_path_factory.mktemp("working-directory"))
        yield


# A server that takes long to start, libraries that take long to import, a browser.
_SHARING = ("tests/e2e", "tests/ingestion", "tests/web")


_files_run = itertools.count(1)
_COLLECTED_EVERY = 40  # files


@pytest.fixture(scope="module", autouse=True)
def collector_between_tests() -> Iterator[None]:
    """Garbage is collected as before a test; what tests have left behind is collected between two files.

    A command turns collection off, and an application that has loaded its models freezes what is there. Late in a run
    a collection of everything takes seconds and stops every thread of a server under test: so it is done between two
    files, now and then, and what remains is frozen.
    """
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.enable()
    if next(_files_run) % _COLLECTED_EVERY == 0:
        gc.unfreeze()
        gc.collect()
        gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def log_between_files() -> Iterator[None]:
    """Where a file's tests send the log ends with the file."""
    with log_put_back():
        yield


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file's tests run in one process, so that what they share is made once, and so do those of some folders.

    Not by xdist's groups: it writes them into tests' ids, where pytest 9.2 does not see them.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return _scope(nodeid)

    return Together(config, log)
