"""app.server.background_loading: loads in a thread, reports progress and failure, and closes what it loaded."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from app.errors import SetupError
from app.server.background_loading import BackgroundLoading, Step

STEPS = ("embedder", "generator")


class Recorded:
    """A loader that waits before its second step until `go` is set, and a record of what was called."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.calls: list[str] = []
        self.reached, self.go, self.heard = threading.Event(), threading.Event(), threading.Event()
        self._failure = failure

    @contextmanager
    def load(self, begin: Callable[[str], None]) -> Iterator[None]:
        begin("embedder")
        self.reached.set()
        assert self.go.wait(30)
        begin("generator")
        if self._failure is not None:
            raise self._failure
        yield
        self.calls.append("closed")

    def record(self, name: str) -> Callable[[], None]:
        def called() -> None:
            self.calls.append(name)
            self.heard.set()

        return called

    def loading(self) -> BackgroundLoading:
        return BackgroundLoading(
            self.load, steps=STEPS, on_ready=self.record("ready"), on_failure=self.record("failed")
        )


def test_the_step_is_shown_and_the_models_are_closed_at_the_end() -> None:
    recorded = Recorded()
    loading = recorded.loading()
    loading.start()
    assert recorded.reached.wait(30)
    assert loading.step == Step("embedder", 0, 2)
    assert recorded.calls == []
    recorded.go.set()
    assert recorded.heard.wait(30)
    assert (loading.step, loading.failure) == (Step("generator", 1, 2), None)
    assert recorded.calls == ["ready"]

    assert loading.close()

    assert recorded.calls == ["ready", "closed"]


def test_a_failure_is_kept_and_reported() -> None:
    recorded = Recorded(SetupError("There is no model."))
    loading = recorded.loading()
    loading.start()
    recorded.go.set()
    assert recorded.heard.wait(30)

    assert loading.close()

    assert (str(loading.failure), recorded.calls) == ("There is no model.", ["failed"])


def test_closing_ends_the_loading_at_its_next_step_without_a_failure() -> None:
    recorded = Recorded()

    @contextmanager
    def endless(begin: Callable[[str], None]) -> Iterator[None]:
        for _ in count():
            begin("embedder")
            recorded.reached.set()
        yield

    loading = BackgroundLoading(
        endless, steps=STEPS, on_ready=recorded.record("ready"), on_failure=recorded.record("failed")
    )
    loading.start()
    assert recorded.reached.wait(30)

    assert loading.close()

    assert (recorded.calls, loading.failure) == ([], None)


def test_a_loading_that_was_never_started_can_be_closed() -> None:
    assert Recorded().loading().close()
