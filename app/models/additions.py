"""Adds models of the Hugging Face hub while the server runs: each is downloaded and checked in a process of its own.

The server itself never asks the hub. A process can be ended at any moment, takes the memory of its checks with it, and
what it had downloaded is kept for the next time.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from app.errors import Conflict, InvalidRequest, NotFound, SetupError, TermsNotAccepted
from app.ids import new_id
from app.models.hub import download, hub_name, look_up, work_folder

_KEPT = 20  # additions that are remembered
_OFFLINE = "HF_HUB_OFFLINE"
_OURS = "FOOTNOTE_"  # settings, secrets among them, of which the process needs none


class AdditionState(StrEnum):
    """How far an addition is."""

    DOWNLOADING = "downloading"
    ADDED = "added"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """The addition of one model.

    `bytes` is what the model takes, `done_bytes` what of it is on the disk; `started_at` is in Unix seconds. `detail`
    is the reason of a failure.
    """

    id: str
    model: str
    commit: str
    licence: str
    bytes: int
    done_bytes: int
    state: AdditionState
    started_at: int
    detail: str | None = None


class ModelAdditions:
    """Adds one model at a time, and remembers how the last ones went. Safe for concurrent use.

    >>> addition = additions.add("Qwen/Qwen3-1.7B", accept_terms=False)
    >>> additions.list()[0].done_bytes
    """

    def __init__(self, *, models_dir: Path, command: Sequence[str] = (), environment: Mapping[str, str] | None = None):
        """Add nothing yet. A server that was started with HF_HUB_OFFLINE adds nothing at all.

        Args:
            models_dir: Where models are put.
            command: Of the process; empty runs this module.
            environment: Of the server, None for this process's; the other gets it without the settings of Footnote.
        """
        self._models_dir = models_dir
        self._command = command or (sys.executable, "-m", "app.models.additions")
        self._environment = dict(os.environ if environment is None else environment)
        self._lock = threading.Lock()
        self._found: dict[str, Addition] = {}
        self._process: subprocess.Popen[str] | None = None
        self._running: str | None = None  # the id of the addition that the process downloads

    def add(self, named: str, *, accept_terms: bool) -> Addition:
        """Ask the hub for a model, and begin its download.

        Args:
            named: `ORGANISATION/NAME`, with `@REVISION` if you like.
            accept_terms: Whether the terms of a licence that does not allow every use are accepted.

        Raises:
            Conflict: Another model is being added.
            TermsNotAccepted: The licence has terms.
            InvalidRequest: There is no such model, it has no weights that can be used, or the hub cannot be reached.
        """
        if self._environment.get(_OFFLINE, "") not in {"", "0"}:
            raise InvalidRequest(f"This server was started with {_OFFLINE}, and asks no hub.", param="model")
        try:
            hub_name(named)
        except SetupError as error:
            raise InvalidRequest(str(error), param="model") from None
        with self._lock:
            if self._process is not None:
                raise Conflict("A model is being added. Wait for it, or cancel it.")
            self._process = process = self._started(named, accept_terms=accept_terms)
        told = self._told(process, accept_terms=accept_terms)
        addition = Addition(
            id=new_id("mod"),
            model=told["id"],
            commit=told["commit"],
            licence=told["licence"],
            bytes=told["bytes"],
            done_bytes=0,
            state=AdditionState.DOWNLOADING,
            started_at=int(time.time()),
        )
        with self._lock:
            self._found[addition.id] = addition
            self._running = addition.id
            for old in list(self._found)[:-_KEPT]:
                del self._found[old]
        threading.Thread(target=self._followed, args=(addition.id, process), name="add-model", daemon=True).start()
        return self._measured(addition)

    def list(self) -> tuple[Addition, ...]:
        """The additions since the server started, the newest first."""
        with self._lock:
            found = tuple(reversed(self._found.values()))
        return tuple(self._measured(one) for one in found)

    def cancel(self, id: str) -> Addition:  # noqa: A002 - the id of an addition
        """End a download; what it has is kept for the next time. An addition that has ended stays as it is.

        Raises:
            NotFound: There is no such addition.
        """
        with self._lock:
            if id not in self._found:
                raise NotFound(f"There is no addition {id}.")
            if self._running == id and self._process is not None:
                self._found[id] = replace(self._found[id], state=AdditionState.CANCELLED)
                self._process.kill()
            found = self._found[id]
        return self._measured(found)

    def close(self) -> None:
        """End the download that runs; what it has is kept."""
        with self._lock:
            if self._process is not None:
                self._process.kill()

    def _started(self, named: str, *, accept_terms: bool) -> subprocess.Popen[str]:
        return subprocess.Popen(  # noqa: S603 - a name that was checked
            [*self._command, named, str(self._models_dir), *(["--accept-terms"] if accept_terms else [])],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={
                **{name: value for name, value in self._environment.items() if not name.startswith(_OURS)},
                _OFFLINE: "0",
                "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            },
        )

    def _told(self, process: subprocess.Popen[str], *, accept_terms: bool) -> Mapping[str, Any]:
        """What the process says of the model. Where it downloads nothing, it has ended."""
        assert process.stdout is not None, "a pipe"
        told = _read(process.stdout.readline())
        failed = told.get("error")
        if not failed and (accept_terms or not told["has_terms"]):
            return told
        with process.stdout:
            process.wait()
        with self._lock:
            self._process = None
        if failed:
            raise InvalidRequest(failed, param="model")
        raise TermsNotAccepted(
            f"{told['id']} has the licence {told['licence']}, whose terms are at its page of the hub. "
            "Read them, and say that you accept them."
        )

    def _followed(self, id: str, process: subprocess.Popen[str]) -> None:  # noqa: A002 - the id of an addition
        """Wait for the end of the process."""
        assert process.stdout is not None, "a pipe"
        with process.stdout:
            told = _read(process.stdout.readline())
        process.wait()
        with self._lock:
            self._process = self._running = None
            addition = self._found.get(id)
            if addition is None or addition.state is not AdditionState.DOWNLOADING:
                return
            failed = told.get("error")
            self._found[id] = replace(
                addition,
                state=AdditionState.FAILED if failed else AdditionState.ADDED,
                done_bytes=addition.bytes if not failed else self._bytes(addition),
                detail=failed,
            )

    def _measured(self, addition: Addition) -> Addition:
        """With the bytes that are on the disk now."""
        if addition.state is AdditionState.ADDED:
            return addition
        return replace(addition, done_bytes=self._bytes(addition))

    def _bytes(self, addition: Addition) -> int:
        found = 0
        for folder, _, files in os.walk(work_folder(addition.model, models_dir=self._models_dir)):
            for file in files:
                with suppress(FileNotFoundError):  # the hub's client renames files, and the folder goes at the end
                    found += (Path(folder) / file).stat().st_size
        return min(found, addition.bytes)


def _read(line: str) -> Mapping[str, Any]:
    """What a line of the process says."""
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"error": "The download ended early. What it has is kept; try again."}


def run(named: str, models_dir: Path, *, accept_terms: bool, tell: Callable[[Mapping[str, object]], None]) -> None:
    """Look a model up, tell of it, and download it unless its terms are not accepted; an error is told too."""
    try:
        found = look_up(named)
        tell(
            {
                "id": found.id,
                "commit": found.commit,
                "licence": found.licence,
                "bytes": found.bytes,
                "has_terms": found.has_terms,
            }
        )
        if not found.has_terms or accept_terms:
            download(found, models_dir=models_dir)
            tell({"added": found.id})
    except SetupError as error:
        tell({"error": str(error)})


if __name__ == "__main__":
    os.umask(0o022)  # models are public
    run(
        sys.argv[1],
        Path(sys.argv[2]),
        accept_terms="--accept-terms" in sys.argv[3:],
        tell=lambda said: print(json.dumps(said), flush=True),  # noqa: T201 - the server reads it
    )
