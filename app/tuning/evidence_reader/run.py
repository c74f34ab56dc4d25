"""`python -m app.tuning.evidence_reader.run SETS OUT`: train the second span reader, or go on where it stopped.

On several cores `torchrun --nproc-per-node 2 -m app.tuning.evidence_reader.run SETS OUT --threads 1` is faster than
threads. OUT holds `state.pt`, written every ten minutes and at a signal, and finally `trained.safetensors`.
"""

import argparse
import hashlib
import json
import signal
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from types import FrameType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from app.models.folder import resolve
from app.settings import DEFAULT_EMBEDDER, load_settings
from app.tuning.adapter.run import joined
from app.tuning.evidence_reader.groups import Grouper
from app.tuning.evidence_reader.mixture import RULES, Source, order, shares, sources
from app.tuning.evidence_reader.training import (
    STATE,
    TRAINED,
    Maker,
    Recipe,
    Told,
    Trainer,
    makers,
    start,
    weights_of,
    write_weights,
)
from retrieval.plain_tokenizer import plain_tokenizer

_RECENT = 50  # steps averaged by a line of progress
_LINE_SECONDS, _QUIET_SECONDS = 30.0, 50.0


class Teller:
    """Shows progress: a bar on a terminal, elsewhere a line of text every half minute."""

    def __init__(self, console: Console, *, first: int, steps: int, groups: int) -> None:
        self._console = console
        self._steps = steps
        self._groups = groups
        self._first = self._step = first
        self._began = self._last = time.monotonic()
        self._told: deque[Told] = deque(maxlen=_RECENT)
        self._times: deque[float] = deque([self._began], maxlen=_RECENT + 1)
        self.progress = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=console
        )
        self._task = self.progress.add_task("training", total=steps, completed=first)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """While it is entered a terminal shows the bar, and a log hears at least every minute that all is well."""
        if self._console.is_terminal and not self._console.quiet:
            with self.progress:
                yield
            return
        over = Event()
        watch = Thread(target=self._watch, args=(over,), daemon=True)
        watch.start()
        try:
            yield
        finally:
            over.set()
            watch.join()

    def tell(self, step: int, told: Told) -> None:
        """Take in a step."""
        now = time.monotonic()
        self._step = step
        self._told.append(told)
        self._times.append(now)
        line = self._line(step, now)
        self.progress.update(self._task, completed=step, description=line)
        if now - self._last >= _LINE_SECONDS or step in (self._first + 1, self._steps):
            self._last = now
            if not self._console.is_terminal:
                self._print(f"step {step}/{self._steps} {line}")

    def _watch(self, over: Event) -> None:
        while not over.wait(_QUIET_SECONDS / 4):
            now = time.monotonic()
            if now - self._last >= _QUIET_SECONDS:
                self._last = now
                self._print(f"step {self._step + 1} is under way for {now - self._times[-1]:.0f} s")

    def _print(self, line: str) -> None:
        self._console.print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}", soft_wrap=True)

    def _line(self, step: int, now: float) -> str:
        count = len(self._told)
        took = (now - self._times[0]) / max(1, len(self._times) - 1)
        mean = [sum(parts) / count for parts in zip(*self._told, strict=True)]
        left = (self._steps - step) * took / 3600
        return (
            f"loss {mean[0]:.3f} pointed {mean[1]:.3f} apart {mean[2]:.3f} unanswered {mean[3]:.3f} tags {mean[4]:.3f} "
            f"paired {mean[5]:.3f} | {self._groups / took:.2f} groups/s, {took:.1f} s a step, {left:.1f} h left"
        )


def fingerprint(found: Sequence[Source], asked: Sequence[tuple[int, int]]) -> str:
    """Of everything that is gone through: sets, questions, order."""
    names = [
        (source.name, source.question_set.fingerprint, len(source.questions), len(source.lacking)) for source in found
    ]
    return hashlib.sha256(json.dumps([names, asked]).encode()).hexdigest()


def main(arguments: Iterable[str] | None = None) -> None:
    """Train, show progress, and write the trained weights."""
    chosen = _parsed(arguments)
    console = joined(chosen.threads)
    recipe = Recipe(passes=chosen.passes, groups=chosen.groups, seed=chosen.seed, near=chosen.near, pairs=chosen.pairs)
    chosen.out.mkdir(parents=True, exist_ok=True)
    base = Path(resolve(DEFAULT_EMBEDDER, models_dir=load_settings().models_dir))
    found = sources(chosen.data, names=chosen.sets)
    asked = order(found, passes=recipe.passes, seed=recipe.seed, pairs=recipe.pairs)
    steps = len(asked) // recipe.groups
    for source, share in zip(found, shares(found, pairs=recipe.pairs), strict=True):
        counts = f"{len(source.questions)} questions, {len(source.lacking)} unanswerable ones"
        console.print(f"{source.name}: {counts}, {share:.1%}")
    half = _multiplies_half() and not chosen.float32
    console.print(f"{len(asked)} groups, {steps} steps, {'bfloat16' if half else 'float32'}, {chosen.threads} threads")
    model = start(base, recipe, reader=chosen.reader, half=half)
    trainer = Trainer(model, recipe, steps=steps, half=half, fingerprint=fingerprint(found, asked))
    state = chosen.out / STATE
    if state.exists():
        trainer.load_state(state)
        console.print(f"going on at step {trainer.step}")
    grouper = Grouper(found, plain_tokenizer(base), seed=recipe.seed, near=recipe.near)
    maker = makers(grouper, asked, recipe)
    train(trainer, maker, console, state=state, groups=recipe.groups, minutes=chosen.minutes, until=chosen.until)
    if not console.quiet:
        trainer.save_state(state)
        if trainer.step == steps:
            write_weights(trainer, chosen.out / TRAINED)
            console.print(f"done: {chosen.out / TRAINED}")


class _Ended(Exception):
    """The step under way is given up, since the training was asked to end."""


def train(
    trainer: Trainer, maker: Maker, console: Console, *, state: Path, groups: int, minutes: float, until: int = -1
) -> None:
    """Run the remaining steps and save regularly; a signal to end discards the current step.

    Args:
        trainer: The trainer.
        maker: Its groups.
        console: For progress; a quiet one marks a process that follows another and does not save.
        state: The checkpoint file; the caller saves the steps after the last checkpoint.
        groups: In a step.
        minutes: Between two states.
        until: Stop at this step; -1 for none.
    """
    ending: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        del frame
        ending.append(number)
        # The second of two signals, of a launcher and of its group, must not interrupt the saving.
        if trainer.reading and len(ending) == 1:
            raise _Ended

    for number in (signal.SIGTERM, signal.SIGINT):
        # Only the saving process handles signals: if others ended, it would wait for their gradients.
        signal.signal(number, signal.SIG_IGN if console.quiet else end)
    teller = Teller(console, first=trainer.step, steps=trainer.steps, groups=groups)
    saved = time.monotonic()
    with teller.shown(), suppress(_Ended):
        for told in trainer.run(maker):
            teller.tell(trainer.step, told)
            if not console.quiet and time.monotonic() - saved >= 60 * minutes:
                trainer.save_state(state)
                saved = time.monotonic()
                console.print(f"saved at step {trainer.step}")
            if ending or trainer.step == until:
                break


def _multiplies_half() -> bool:
    from retrieval.weights import fastest_dtype

    return fastest_dtype(on_cuda=False) == "bfloat16"


def _parsed(arguments: Iterable[str] | None) -> argparse.Namespace:
    import torch

    parser = argparse.ArgumentParser(prog="python -m app.tuning.evidence_reader.run", description=__doc__)
    parser.add_argument("data", type=Path, help="folder with the question sets, those that train in it or in `train`")
    parser.add_argument("out", type=Path, help="folder outside the repository; training goes on from what it holds")
    parser.add_argument("--passes", type=float, default=Recipe().passes)
    parser.add_argument(
        "--reader",
        type=Path,
        help="span reader to go on from, its folder or the trained.safetensors of an earlier training; else a new one "
        "is trained",
    )
    parser.add_argument("--groups", type=int, default=Recipe().groups, help="groups a step")
    parser.add_argument(
        "--seed", type=int, default=Recipe().seed, help="another one asks other questions first: for going on"
    )
    parser.add_argument("--sets", nargs="+", default=list(RULES), help="train on these alone")
    parser.add_argument("--near", type=int, default=Recipe().near, help="passages besides the right one")
    parser.add_argument(
        "--pairs", action="store_true", help="only unanswerable questions beside answerable ones of the same passage"
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="between two states saved")
    parser.add_argument("--until", type=int, default=-1, help="stop at this step of the same schedule")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--float32", action="store_true", help="also where the processor multiplies bfloat16")
    chosen = parser.parse_args(None if arguments is None else list(arguments))
    if chosen.reader is not None and not weights_of(chosen.reader).is_file():
        parser.error(f"{chosen.reader} is no reader: train one first with `make reader`")
    return chosen


if __name__ == "__main__":
    main()
