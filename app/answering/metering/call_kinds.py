"""What the model calls of an answer are called on the ledger: their numbers and their operations."""

from enum import IntEnum

from app.answering.metering.token_usage import Purpose
from app.types import Operation


class CallNumber(IntEnum):
    """Numbers the model calls within one answer, and so names their ledger rows: `{request id}:{number}`.

    A `FIRST_…` number begins a range: 8 summaries at most, and any number of verifications.
    """

    REWRITE = 0
    EMBED_QUERY = 1
    ANSWER = 2
    RERANK = 3
    FIRST_SUMMARY = 4
    EMBED_PASSAGES = 96
    COMPARE = 97
    FIND_QUOTES = 98
    READ = 99
    FIRST_VERIFICATION = 100


KINDS = {
    Purpose.REWRITE: (CallNumber.REWRITE, Operation.REWRITE),
    Purpose.EMBED_QUERY: (CallNumber.EMBED_QUERY, Operation.EMBED_QUERY),
    Purpose.EMBED_PASSAGES: (CallNumber.EMBED_PASSAGES, Operation.EMBED_DOC),
    Purpose.ANSWER: (CallNumber.ANSWER, Operation.CHAT),
    Purpose.RERANK: (CallNumber.RERANK, Operation.RERANK),
    Purpose.SUMMARISE: (CallNumber.FIRST_SUMMARY, Operation.REWRITE),
    Purpose.EXTRACT: (CallNumber.FIND_QUOTES, Operation.EMBED_QUERY),
    Purpose.LOCATE: (CallNumber.READ, Operation.JUDGE),
    Purpose.COMPARE: (CallNumber.COMPARE, Operation.JUDGE),
    Purpose.VERIFY: (CallNumber.FIRST_VERIFICATION, Operation.JUDGE),
}
"""By purpose, the number of its first call, and its operation on the ledger."""

SEVERAL = frozenset({Purpose.SUMMARISE, Purpose.VERIFY})
"""The purposes that an answer may have several calls for, numbered from the first on."""
