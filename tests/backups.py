"""Backups of installations whose originals are where the settings have them."""

from pathlib import Path
from typing import Any

from app.backup import restore as restoring
from app.backup import snapshot
from app.backup.contents import Summary
from app.backup.restore import Restored
from app.server.originals import restored_originals, stored_originals
from app.settings import ServerSettings


def back_up(settings: ServerSettings, target: Path, **options: Any) -> Summary:
    """See `app.backup.snapshot.back_up`."""
    return snapshot.back_up(settings, target, originals=stored_originals(settings), **options)


def restore(settings: ServerSettings, source: Path, **options: Any) -> Restored:
    """See `app.backup.restore.restore`."""
    return restoring.restore(settings, source, originals_in=restored_originals(settings), **options)
