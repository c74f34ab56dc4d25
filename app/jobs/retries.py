"""What is worth another try, and when."""

from app.errors import StorageFull, StoreUnavailable
from ingestion.errors import IngestionError, ParserCrashed

FIRST_SECONDS = 2.0
LONGEST_SECONDS = 300.0
PARSER_ATTEMPTS = 2
"""How often a file is given to a parser that dies of it: once may have been for want of memory, twice is the file."""


def delay_after(error: Exception, *, attempts: int) -> float | None:
    """Seconds until a job is tried again that failed with `error` at its `attempts`th try; None: never.

    The delay doubles from try to try up to five minutes. A store that is full or out of reach is tried for as
    long as that takes: the file was acknowledged, and whoever does not want it any more cancels the job.
    """
    assert attempts >= 1, "it was tried"
    if isinstance(error, ParserCrashed) and attempts >= PARSER_ATTEMPTS:
        return None
    if not isinstance(error, ParserCrashed | StorageFull | StoreUnavailable):
        return None
    return float(min(FIRST_SECONDS * 2 ** min(attempts - 1, 30), LONGEST_SECONDS))


def reason(error: Exception) -> tuple[str, str]:
    """A stable code and a sentence for people; errors nobody foresaw say nothing about their cause."""
    match error:
        case IngestionError():
            return error.code, str(error)
        case StorageFull():
            return "insufficient-storage", "The disk had no room for this document's text."
        case StoreUnavailable():
            return "store-unavailable", "The database could not be reached or was locked."
    return "internal-error", "Something went wrong on our side while reading this document."
