"""Watches an event loop and the interpreter: nothing may hold either of them for long.

Wall-clock time says little on a busy machine. So a hold is counted in processor time of the thread that holds, and the
time that the watching thread waited for a processor does not count as waiting for the interpreter. Nor does the time
that a virtual machine's host gave to others: it stops one processor for a tenth of a second while the other goes on.
A host may also slow a processor without saying so: what looks like a hold is counted in what the processor would have
taken at its best, by a piece of work that is always the same.

A look lets go of the interpreter nowhere. A thread that only computes gives it back every 5 ms
(`sys.getswitchinterval`), and a look that opened and read a file by Python's means waited for it five times and more:
late by a tenth of a second, though nothing was held.

A look may also be late for a reason that nobody counts, while a thread works that has let go of the interpreter. So a
second thread looks too, at other moments: where it came to its turn meanwhile, the interpreter was free.
"""

import asyncio
import ctypes
import os
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from ingestion.ports import Extractor
from ingestion.types import Extraction

LONGEST_S = 0.1
LOOP = "the event loop"
"""What a hold of the loop is of; others are of the interpreter, by a thread."""
_TICK_S = 0.005
_COUNTED_AFTER_S = 0.03  # stolen time is counted at ticks of the clock, 4 to 10 ms apart
_BEATS_KEPT = 2_000  # ten seconds of them
_TRIALS, _TURNS = 5, 20_000  # half a millisecond each
_STOLEN = 7  # of the numbers of /proc/stat's first line
_CLIENTS = ("MainThread", "schemathesis")
"""How names of threads begin that send requests in the same process."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Something that held the loop or the interpreter, for so many seconds of processor time, and where it was then."""

    what: str
    seconds: float
    where: str

    def __str__(self) -> str:
        return f"{self.what} was held for {self.seconds * 1000:.0f} ms of processor time, at:\n{self.where}"


@dataclass(frozen=True, slots=True)
class _Look:
    """What the watching thread saw: when, the seconds it had waited for a processor, and what others had worked."""

    at: float
    waited: float
    clocks: dict[int, float]


class WorkElsewhere:
    """Notes the work that a server gives to another process and a test does in a thread of its own: it is no hold."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: set[int] = set()
        self._ended: dict[int, float] = {}

    @contextmanager
    def doing(self) -> Iterator[None]:
        """The calling thread does such work inside the block."""
        ident = threading.get_ident()
        with self._lock:
            self._under_way.add(ident)
        try:
            yield
        finally:
            with self._lock:
                self._under_way.discard(ident)
                self._ended[ident] = time.monotonic()

    def since(self, moment: float) -> frozenset[int]:
        """The threads that did such work at any time since `moment`, in seconds of `time.monotonic`."""
        with self._lock:
            return frozenset(self._under_way) | {ident for ident, ended in self._ended.items() if ended >= moment}


class ElsewhereExtractor:
    """An `Extractor` in the calling process, whose work counts as another process's."""

    def __init__(self, extractor: Extractor, elsewhere: WorkElsewhere) -> None:
        self._extractor = extractor
        self._elsewhere = elsewhere

    def extract(self, path: Path, *, filename: str, password: str | None = None) -> Extraction:
        """See `ports.Extractor`."""
        with self._elsewhere.doing():
            return self._extractor.extract(path, filename=filename, password=password)


class Processor:
    """How fast the processor is now, measured by the time that a loop of Python's takes."""

    def __init__(self) -> None:
        self._best = min(self._measured() for _ in range(_TRIALS))

    def slowness(self) -> float:
        """How many times as long as at its best it takes now, at least 1."""
        now = sorted(self._measured() for _ in range(_TRIALS))
        self._best = min(self._best, now[0])
        return now[_TRIALS // 2] / self._best

    @staticmethod
    def _measured() -> float:
        began = time.thread_time()
        for _ in range(_TURNS):
            pass
        return time.thread_time() - began


class Pulse:
    """A thread that notes every few milliseconds that it had the interpreter."""

    def __init__(self) -> None:
        self._beats: deque[float] = deque(maxlen=_BEATS_KEPT)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="loop-watch-pulse", daemon=True)

    @contextmanager
    def beating(self) -> Iterator["Pulse"]:
        """Beat inside the block."""
        self._thread.start()
        try:
            yield self
        finally:
            self._over.set()
            self._thread.join()

    def longest_pause(self, since: float, until: float) -> float:
        """The longest time without a beat between two moments of `time.monotonic`, in seconds."""
        moments = [since, *(beat for beat in list(self._beats) if since < beat < until), until]
        return max(after - before for before, after in pairwise(moments))

    def _beat(self) -> None:
        while not self._over.is_set():
            self._beats.append(time.monotonic())
            time.sleep(_TICK_S)


class LoopWatch:
    """A thread that asks the loop to answer again and again, and notes when it does not.

    The loop is held while its thread works for more than `longest_s` between being asked and answering. The interpreter
    is held while another thread works for that long and this one, due to run, cannot, nor can a second.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        longest_s: float = LONGEST_S,
        elsewhere: WorkElsewhere | None = None,
        on_hold: Callable[[Hold], None] = lambda _hold: None,
        slowness: Callable[[], float] | None = None,
    ) -> None:
        """Watch `loop`, which runs in the calling thread; work noted in `elsewhere` is no hold.

        `on_hold` is called with each hold, in the watching thread; `slowness` says how many times as long as at its
        best the processor takes now.
        """
        self._loop = loop
        self._slowness = slowness or Processor().slowness
        self._on_hold = on_hold
        self._elsewhere = elsewhere or WorkElsewhere()
        self._longest_s = longest_s
        self._served_by = threading.get_ident()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="loop-watch", daemon=True)
        self._answered = threading.Event()
        self.holds: list[Hold] = []
        self.longest_s = 0.0
        self.asked = 0

    @contextmanager
    def watching(self) -> Iterator["LoopWatch"]:
        """Watch inside the block."""
        self._thread.start()
        try:
            yield self
        finally:
            self._over.set()
            self._thread.join()

    def noted(self) -> list[str]:
        """What was held until now, once the watch has looked after this call."""
        asked, until = self.asked, time.monotonic() + 10
        while self.asked < asked + 2 and time.monotonic() < until:
            time.sleep(_TICK_S)
        return [str(hold) for hold in self.holds]

    def forget(self) -> None:
        """Begin anew, for the next test."""
        self.holds.clear()
        self.longest_s = 0.0

    def _watch(self) -> None:
        with waits_of_this_thread() as self._waited, Pulse().beating() as self._pulse:
            self._before = self._last = self._look()
            self._ask_until_over()

    def _ask_until_over(self) -> None:
        while not self._over.is_set():
            began, where = _clock(self._served_by), ""
            self._answered.clear()
            self.asked += 1
            try:
                self._loop.call_soon_threadsafe(self._answered.set)
            except RuntimeError:
                return  # the loop is closed
            while not self._tick(lambda: self._answered.wait(_TICK_S)) and not self._over.is_set():
                if not where and _clock(self._served_by) - began > self._longest_s / 2:
                    where = _stack(self._served_by)
            worked = self._at_best(_clock(self._served_by) - began)
            self.longest_s = max(self.longest_s, worked)
            if worked > self._longest_s:
                self._note(Hold(LOOP, worked, where))
            self._tick(lambda: self._over.wait(_TICK_S))

    def _tick(self, wait: Callable[[], bool]) -> bool:
        """Wait for a moment; a look that comes much later than it was due was held up by the thread that worked.

        From look to look no time is left out: a thread may take the interpreter also while this one looks. What was
        worked just before a late look began counts too, since a look is not taken in one instant.
        """
        happened = wait()
        before, last, now = self._before, self._last, self._look()
        self._before, self._last = last, now
        late = now.at - last.at - _TICK_S
        held = self._pulse.longest_pause(last.at, now.at) > self._longest_s
        if (
            held
            and late - (now.waited - last.waited) > self._longest_s
            and late - self._waited_since(last) > self._longest_s
        ):
            elsewhere = self._elsewhere.since(before.at)
            for ident, name in self._others().items():
                worked = self._at_best(now.clocks.get(ident, 0.0) - before.clocks.get(ident, 0.0))
                if worked > self._longest_s and ident not in elsewhere:
                    self._note(Hold(f"the interpreter, by {name},", worked, _stack(ident)))
        return happened

    def _at_best(self, worked: float) -> float:
        """Seconds of work, where they are too many: as many as the processor would have taken at its best."""
        return worked / self._slowness() if worked > self._longest_s else worked

    def _waited_since(self, look: _Look) -> float:
        """The seconds of waiting since a look, once the kernel has counted them all."""
        time.sleep(_COUNTED_AFTER_S)
        return self._waited() - look.waited

    def _look(self) -> _Look:
        waited, others = self._waited(), self._others()
        return _Look(time.monotonic(), waited, {ident: _clock(ident) for ident in others})

    def _note(self, hold: Hold) -> None:
        self.holds.append(hold)
        self._on_hold(hold)

    def _others(self) -> dict[int, str]:
        """Threads that may hold the interpreter: not the loop's, which is watched anyway, nor those of the test."""
        return {
            thread.ident: thread.name
            for thread in threading.enumerate()
            if thread.ident is not None
            and thread.ident != self._served_by
            and not thread.name.startswith((*_CLIENTS, "loop-watch"))
        }


def _clock(ident: int) -> float:
    """Processor seconds of a thread; 0 where it has ended."""
    try:
        return time.clock_gettime(time.pthread_getcpuclockid(ident))
    except OSError:
        return 0.0


@contextmanager
def waits_of_this_thread() -> Iterator[Callable[[], float]]:
    """A function for the seconds that this thread, which wanted to run, waited for a processor of this machine.

    Time that the host stole from any of the machine's processors is counted too. Both are 0 where no kernel counts them
    (proc(5)). The files are read by calls that keep the interpreter.
    """
    with ExitStack() as files:
        queued = files.enter_context(_numbers_of("/proc/thread-self/schedstat"))
        machine = files.enter_context(_numbers_of("/proc/stat"))

        def waited() -> float:
            of_thread, of_machine = queued(), machine()
            stolen = of_machine[_STOLEN] / os.sysconf("SC_CLK_TCK") if len(of_machine) > _STOLEN else 0.0
            return stolen + (of_thread[1] / 1e9 if len(of_thread) > 1 else 0.0)

        yield waited


@contextmanager
def _numbers_of(path: str) -> Iterator[Callable[[], list[int]]]:
    """A function for the numbers in a file's first line; for none where there is no such file."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        yield list
        return
    text = ctypes.create_string_buffer(200)
    read = ctypes.PyDLL(None).pread
    read.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_long)

    def numbers() -> list[int]:
        length = read(file, text, len(text), 0)
        return [int(word) for word in text.raw[: max(0, length)].partition(b"\n")[0].split() if word.isdigit()]

    try:
        yield numbers
    finally:
        os.close(file)


def _stack(ident: int) -> str:
    frame = sys._current_frames().get(ident)  # noqa: SLF001 - there is no public way
    return "".join(traceback.format_stack(frame)[-12:]) if frame is not None else "(it has ended)"
