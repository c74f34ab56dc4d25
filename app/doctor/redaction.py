"""Settings as they may be shown to others: no secrets, no passwords in addresses, no name of whoever runs it."""

import re
from pathlib import Path

from pydantic import SecretStr

from app.doctor.report import Facts
from app.settings import Settings

_URL = re.compile(r"\b([a-z][a-z0-9+.\-]*)://(?:[^/?#\s]*@)?([^?#\s]*)(?:\?[^#\s]*)?(?:#\S*)?", re.IGNORECASE)


def shown(settings: Settings) -> Facts:
    """Every setting; a secret is `set` or `unset`."""
    return {name: _shown(getattr(settings, name)) for name in type(settings).model_fields}


def tame(text: str) -> str:
    """`text` without users, passwords and queries of the addresses in it, the home folder as `~`."""
    home = str(Path.home())
    text = _URL.sub(lambda found: f"{found[1]}://{found[2]}", text)
    return text.replace(home, "~") if home != "/" else text


def _shown(value: object) -> object:
    if isinstance(value, SecretStr):
        return "set"
    if isinstance(value, str | Path):
        return tame(str(value))
    return value
