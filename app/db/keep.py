"""Changes that leave out what is to stay: `KEEP` is not `None`, which is a value."""

from enum import Enum
from typing import Final


class Keep(Enum):
    """The type of `KEEP`."""

    KEEP = "keep"


KEEP: Final = Keep.KEEP
