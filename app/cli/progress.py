"""How far a long command is, while it runs."""

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

from app.cli.tally import Outcome, Tally

_LINE_EVERY_S = 10.0  # where there is no terminal: a log is read, not watched
_QUIET = frozenset({Outcome.UNCHANGED, Outcome.OVERTAKEN})
_STYLES = {Outcome.FAILED: "red", Outcome.REMOVED: "yellow"}


class Bar:
    """One bar at a time, for what is being done now."""

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
        """`done` of `total` of what is being done now."""
        if what != self._what:
            if self._task is not None:
                self._progress.remove_task(self._task)
            self._what, self._task = what, self._progress.add_task(what, total=total)
        assert self._task is not None, "the first call makes a task"
        self._progress.update(self._task, completed=done, total=total)


class Progressing(AbstractContextManager["Progressing"], Protocol):
    """An ingestion's display; it is shown while it is entered."""

    def show(self, tally: Tally) -> None:
        """Counts changed; called often."""

    def settled(self, outcome: Outcome, name: str, detail: str) -> None:
        """A file is done."""

    def say(self, line: str) -> None:
        """Something the person should know."""


def progress_of(console: Console, *, each: bool) -> Progressing:
    """A live display on a terminal, plain lines elsewhere; with `each`, a line for every file that is done."""
    return LiveProgress(console, each=each) if console.is_terminal else PlainProgress(console, each=each)


class LiveProgress(Progressing):
    """A bar and two lines of figures at the foot of the terminal; what happens scrolls above."""

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
        """Remember the counts; the display's own thread draws them."""
        self._tally = tally

    def settled(self, outcome: Outcome, name: str, detail: str) -> None:
        """A line for a failure, or for every file."""
        if _is_told(outcome, each=self._each):
            self._console.print(_line(outcome, name, detail), soft_wrap=True)

    def say(self, line: str) -> None:
        """A line."""
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
        """Nothing is left to clear."""

    def show(self, tally: Tally) -> None:
        """A line when the last one is ten seconds old and says something else."""
        if self._clock() - self._last < _LINE_EVERY_S:
            return
        self._last = self._clock()
        if (line := f"{counted(tally)} · {in_flight(tally)}") != self._shown:
            self._shown = line
            self._console.print(Text(line), soft_wrap=True)

    def settled(self, outcome: Outcome, name: str, detail: str) -> None:
        """A line for a failure, or for every file."""
        if _is_told(outcome, each=self._each):
            self._console.print(_line(outcome, name, detail), soft_wrap=True)

    def say(self, line: str) -> None:
        """A line."""
        self._console.print(Text(line), soft_wrap=True)


def counted(tally: Tally) -> str:
    """Files, failures, what is left."""
    parts = [f"{tally.done:,}/{tally.files:,} files"]
    if unchanged := tally.outcomes[Outcome.UNCHANGED]:
        parts.append(f"{unchanged:,} unchanged")
    if tally.failures:
        parts.append(f"{len(tally.failures):,} failed")
    remaining = tally.remaining_s()
    if remaining is not None and tally.done < tally.files:
        parts.append(f"about {timedelta(seconds=round(remaining))} left")
    return " · ".join(parts)


def in_flight(tally: Tally) -> str:
    """Pages, chunks, speed, and what the server works on by stage."""
    parts = [f"{tally.pages:,} pages", f"{tally.chunks:,} chunks", f"{tally.tokens_per_s():,.0f} tokens/s"]
    if tally.stages:
        parts.append("in flight: " + ", ".join(f"{count} {stage}" for stage, count in sorted(tally.stages.items())))
    return " · ".join(parts)


def _is_told(outcome: Outcome, *, each: bool) -> bool:
    return outcome is Outcome.FAILED or (each and outcome not in _QUIET)


def _line(outcome: Outcome, name: str, detail: str) -> Text:
    return Text(f"{outcome:8}{name}" + (f": {detail}" if detail else ""), style=_STYLES.get(outcome, ""))
