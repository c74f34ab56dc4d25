"""app.server.background_loading: loads in a thread, reports progress and failure, and closes what it loaded."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from app.errors import SetupError
from app.server.background_loading import BackgroundLoading, Step

STEPS = ("embedder", "generator")


class Story:
    """What happened, and a loader that stops at its second step until it may go on."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.told: list[str] = []
        self.reached, self.go, self.heard = threading.Event(), threading.Event(), threading.Event()
        self._failure = failure

    @contextmanager
    def load(self, begin: Callable[[str], None]) -> Iterator[None]:
        begin("embedder")
        self.reached.set()
        assert self.go.wait(10)
        begin("generator")
        if self._failure is not None:
            raise self._failure
        yield
        self.told.append("closed")

    def tell(self, what: str) -> Callable[[], None]:
        def tell() -> None:
            self.told.append(what)
            self.heard.set()

        return tell

    def loading(self) -> BackgroundLoading:
        return BackgroundLoading(self.load, steps=STEPS, on_ready=self.tell("ready"), on_failure=self.tell("failed"))


def test_it_says_what_it_loads_and_closes_it_at_the_end() -> None:
    story = Story()
    loading = story.loading()
    loading.start()
    assert story.reached.wait(10)
    assert (loading.step, loading.ready) == (Step("embedder", 0, 2), False)
    story.go.set()
    assert story.heard.wait(10)
    assert (loading.step, loading.ready, loading.failure) == (Step("generator", 1, 2), True, None)

    assert loading.close()

    assert story.told == ["ready", "closed"]


def test_a_failure_is_kept_and_told() -> None:
    story = Story(SetupError("There is no model."))
    loading = story.loading()
    loading.start()
    story.go.set()
    assert story.heard.wait(10)

    assert loading.close()

    assert (str(loading.failure), story.told, loading.ready) == ("There is no model.", ["failed"], False)


def test_what_is_closed_while_it_loads_begins_no_further_step_and_has_not_failed() -> None:
    story = Story()
    loading = story.loading()
    loading.start()
    assert story.reached.wait(10)
    closing = threading.Thread(target=loading.close)
    closing.start()
    while closing.is_alive() and not loading._closing.is_set():
        pass
    story.go.set()
    closing.join(10)

    assert (story.told, loading.failure, loading.ready) == ([], None, False)


def test_one_that_was_never_begun_is_closed() -> None:
    assert Story().loading().close()
