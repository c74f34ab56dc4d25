"""A data dir whose database is migrated already: a copy takes a moment, all migrations a tenth of a second."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from app.db.migration import upgrade
from app.db.session import Database


def installed(data_dir: Path) -> Path:
    """`data_dir`, which holds a database at the newest revision: its own if it had one, an empty one if not."""
    path = data_dir / "footnote.db"
    if not path.exists():
        data_dir.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(migrated(), path)
    return data_dir


@cache
def migrated() -> Path:
    """A migrated SQLite file to copy; closed, so that it is whole."""
    folder = Path(tempfile.mkdtemp(prefix="footnote-migrated-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    database = Database.open(f"sqlite:///{folder / 'footnote.db'}")
    upgrade(database)
    database.close()
    return folder / "footnote.db"
