"""Shows the progress of a long command: a live display on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.progress_bar import ProgressBar
from rich.text import Text

from app.cli.tally import Tally, UploadResult

_LINE_EVERY_S = 10.0  # where there is no terminal: a log is read, not watched
_QUIET = frozenset({UploadResult.UNCHANGED, UploadResult.OVERTAKEN})
_STYLES = {UploadResult.FAILED: "red", UploadResult.REMOVED: "yellow"}


class Bar:
    """One progress bar at a time, for the current step."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description}", justify="left", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._what = ""
        self._task: TaskID | None = None

    def __enter__(self) -> "Bar":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def __call__(self, what: str, done: int, total: int) -> None:
        """Shows `done` of `total` for the current step."""
        if what != self._what:
            if self._task is not None:
                self._progress.remove_task(self._task)
            self._what, self._task = what, self._progress.add_task(what, total=total)
        assert self._task is not None, "the first call makes a task"
        self._progress.update(self._task, completed=done, total=total)


class Progressing(AbstractContextManager["Progressing"], Protocol):
    """The display of an ingestion, shown inside its `with` block."""

    def show(self, tally: Tally) -> None:
        """Shows changed counts; called often."""

    def settled(self, outcome: UploadResult, name: str, detail: str) -> None:
        """Reports that a file is done."""

    def say(self, line: str) -> None:
        """Shows a message to the user."""


def progress_of(console: Console, *, each: bool) -> Progressing:
    """A live display on a terminal, plain lines elsewhere; `each` adds a line for every finished file."""
    return LiveProgress(console, each=each) if console.is_terminal else PlainProgress(console, each=each)


class LiveProgress(Progressing):
    """A bar and two lines of figures at the bottom of the terminal; messages scroll above it."""

    def __init__(self, console: Console, *, each: bool) -> None:
        self._console = console
        self._each = each
        self._tally: Tally | None = None
        self._live = Live(get_renderable=self._drawn, console=console, refresh_per_second=4, transient=True)

    def __enter__(self) -> "LiveProgress":
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, tally: Tally) -> None:
        """Stores the counts; the display's own thread draws them."""
        self._tally = tally

    def settled(self, outcome: UploadResult, name: str, detail: str) -> None:
        """Prints a line for a failure, or for every file."""
        if _is_told(outcome, each=self._each):
            self._console.print(_line(outcome, name, detail), soft_wrap=True)

    def say(self, line: str) -> None:
        """Prints a line."""
        self._console.print(Text(line, style="yellow"), soft_wrap=True)

    def _drawn(self) -> Group:
        if self._tally is None:
            return Group(Text("looking at what is there …", style="dim"))
        bar = ProgressBar(total=max(1, self._tally.files), completed=self._tally.done, width=48)
        return Group(bar, Text(counted(self._tally)), Text(in_flight(self._tally), style="dim"))


class PlainProgress(Progressing):
    """A line every ten seconds, and one for every failure or file."""

    def __init__(self, console: Console, *, each: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._each = each
        self._clock = clock
        self._last = clock()
        self._shown = ""

    def __enter__(self) -> "PlainProgress":
        return self

    def __exit__(self, *_: object) -> None:
        """Does nothing: plain lines need no cleanup."""

    def show(self, tally: Tally) -> None:
        """Prints a line when the last one is ten seconds old and the text has changed."""
        if self._clock() - self._last < _LINE_EVERY_S:
            return
        self._last = self._clock()
        if (line := f"{counted(tally)} · {in_flight(tally)}") != self._shown:
            self._shown = line
            self._console.print(Text(line), soft_wrap=True)

    def settled(self, outcome: UploadResult, name: str, detail: str) -> None:
        """Prints a line for a failure, or for every file."""
        if _is_told(outcome, each=self._each):
            self._console.print(_line(outcome, name, detail), soft_wrap=True)

    def say(self, line: str) -> None:
        """Prints a line."""
        self._console.print(Text(line), soft_wrap=True)


def counted(tally: Tally) -> str:
    """Formats files done, failures and files left."""
    parts = [f"{tally.done:,}/{tally.files:,} files"]
    if unchanged := tally.outcomes[UploadResult.UNCHANGED]:
        parts.append(f"{unchanged:,} unchanged")
    if tally.failures:
        parts.append(f"{len(tally.failures):,} failed")
    remaining = tally.remaining_s()
    if remaining is not None and tally.done < tally.files:
        parts.append(f"about {timedelta(seconds=round(remaining))} left")
    return " · ".join(parts)


def in_flight(tally: Tally) -> str:
    """Formats pages, chunks, speed, and the documents in flight by stage."""
    parts = [f"{tally.pages:,} pages", f"{tally.chunks:,} chunks", f"{tally.tokens_per_s():,.0f} tokens/s"]
    if tally.stages:
        parts.append("in flight: " + ", ".join(f"{count} {stage}" for stage, count in sorted(tally.stages.items())))
    return " · ".join(parts)


def _is_told(outcome: UploadResult, *, each: bool) -> bool:
    return outcome is UploadResult.FAILED or (each and outcome not in _QUIET)


def _line(outcome: UploadResult, name: str, detail: str) -> Text:
    return Text(f"{outcome:8}{name}" + (f": {detail}" if detail else ""), style=_STYLES.get(outcome, ""))
