"""A write-ahead journal for settlements that the database cannot take.

The counts of a call are known only when it ends, so a settlement must survive an unreachable database. Each line is
fsynced before the caller continues. Settling is idempotent, so replaying a line twice changes nothing.
"""

import json
import os
import threading
from dataclasses import asdict
from pathlib import Path

from app.disk import sync_folder
from app.telemetry.logs import logger
from app.types import Settlement, UsageStatus


class SettlementJournal:
    """An append-only file of JSON lines, one for each settlement. Safe to use from any thread, but by one process.

    If the file cannot be written either, settlements are kept in memory and the failure is logged.

    Example:
        >>> journal = SettlementJournal(data_dir / "settlements.jsonl")
        >>> journal.append(event_id, settlement)
        >>> for event_id, settlement in journal.pending():
        ...     journal.remove(event_id)  # after the database has taken it
    """

    def __init__(self, path: Path) -> None:
        """Load the settlements of an earlier process. An incomplete last line was not acknowledged and is cut off.

        Raises:
            OSError: The file exists and cannot be read or repaired.
        """
        self._path = path
        self._lock = threading.Lock()
        self._pending: dict[str, Settlement] = {}
        if path.exists():
            self._load()

    def __len__(self) -> int:
        return len(self._pending)

    def append(self, event_id: str, settlement: Settlement) -> None:
        """Store a settlement durably; a second one for the same row is ignored."""
        with self._lock:
            if event_id in self._pending:
                return
            self._pending[event_id] = settlement
            line = json.dumps({"event_id": event_id, **asdict(settlement)}, separators=(",", ":")) + "\n"
            try:
                self._write(line.encode())
            except OSError as error:
                logger().error("settlement.unwritten", row=event_id, error=type(error).__name__)
            else:
                logger().warning("settlement.journaled", row=event_id, waiting=len(self._pending))

    def pending(self) -> tuple[tuple[str, Settlement], ...]:
        """The waiting settlements, oldest first."""
        with self._lock:
            return tuple(self._pending.items())

    def remove(self, event_id: str) -> None:
        """Remove a settlement that the database has taken. The file is truncated when none is left."""
        with self._lock:
            self._pending.pop(event_id, None)
            if not self._pending and self._path.exists():
                try:
                    self._cut(0)
                except OSError as error:  # its lines are replayed once more, which changes nothing
                    logger().warning("settlement.journal_kept", error=type(error).__name__)

    def _write(self, line: bytes) -> None:
        created = not self._path.exists()
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            before = os.fstat(descriptor).st_size
            try:
                written = os.write(descriptor, line)
                if written != len(line):
                    raise OSError("a line was cut short")
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, before)  # the next line must not follow a partial one
                raise
        finally:
            os.close(descriptor)
        if created:
            sync_folder(self._path.parent)

    def _cut(self, size: int) -> None:
        descriptor = os.open(self._path, os.O_WRONLY)
        try:
            os.ftruncate(descriptor, size)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _load(self) -> None:
        content = self._path.read_bytes()
        whole = content.rfind(b"\n") + 1
        for number, line in enumerate(content[:whole].splitlines(), start=1):
            try:
                fields = json.loads(line)
                event_id = fields.pop("event_id")
                settlement = Settlement(**{**fields, "status": UsageStatus(fields["status"])})
            except (ValueError, TypeError, KeyError, AttributeError):
                logger().error("settlement.unreadable", line=number)
                continue
            self._pending.setdefault(event_id, settlement)
        if whole != len(content):
            self._cut(whole)
