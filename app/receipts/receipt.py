"""What a receipt says of a kept answer: question, answer, footnotes, documents, models and the rows of the bill.

It says what was stored, and what is computed from what was stored and never changes: the hashes of a version's file and
text. What would be needed besides to make the answer again is named under `not_recorded`.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from app.answering.conversations.answer_record import AnswerRecord
from app.db.contents import ContentRepository
from app.db.conversations import ConversationRepository
from app.db.tables.usage_columns import LedgerLine
from app.errors import NotFound
from app.types import KeptTurn, Operation, Principal
from app.usage.reports.raw_ledger import LineFilter, NotedPrice, RawLedger
from app.usage.rollups.buckets import LATEST
from app.usage.rollups.sums import decimal

FORMAT = "footnote-receipt/1"
"""The name and version of the format."""

_MOST_ROWS = 1000  # of a bill; an answer has a dozen
_PASSAGE = (
    *("document_id", "version", "filename", "start_char", "end_char", "cited_text", "page_start", "page_end"),
    *("section", "sheet", "cell"),
)
"""What a footnote says of its passage: left out where the caller may not read its document."""

_MARKER = ("index", "answer_start", "answer_end", "verified", "support", "origin", "answers")


@dataclass(frozen=True, slots=True)
class ReceiptMaker:
    """Makes receipts of what callers may read at this moment. `version` is Footnote's.

    Example:
        >>> fields = maker.fields("req_1", principal=principal, now=now)
        >>> fields["bill"]["total"]["cost"]
        '0.000412000000'
    """

    conversations: ConversationRepository
    contents: ContentRepository
    ledger: RawLedger
    version: str

    def fields(self, request_id: str, *, principal: Principal, now: float) -> dict[str, Any]:
        """The receipt of an answer without its signature, as of `now` in Unix seconds.

        Raises:
            NotFound: No such answer is kept for this caller.
            StoreUnavailable: The database cannot be read.
        """
        turn = self.conversations.turn(request_id, principal=principal)
        record = AnswerRecord.of_turn(turn)
        documents, withheld = self._documents(turn, principal)
        hidden = {one["document_id"] for one in withheld if one["reason"] == "not_readable"}
        rows, prices = self._rows(request_id, principal.tenant_id)
        footnotes = [_footnote(citation, hidden) for citation in turn.citations]
        return {
            "format": FORMAT,
            "id": request_id,
            "issued_at": _moment(now),
            "footnote_version": self.version,
            "question": turn.question,
            "answer": _answer(turn, record, readable=not hidden),
            "footnotes": footnotes,
            "documents": documents,
            "withheld": withheld,
            "models": _models(rows),
            "bill": bill_of(rows, prices),
            "not_recorded": _not_recorded(rows, record),
        }

    def _documents(self, turn: KeptTurn, principal: Principal) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The cited versions with their hashes, and those of which there is nothing to tell, with the reason."""
        cited: dict[tuple[str, int], set[int]] = defaultdict(set)
        for one in turn.citations:
            cited[str(one["document_id"]), int(str(one["version"]))].add(int(str(one["index"])))
        deleted = self.conversations.deleted_documents((turn,), tenant_id=principal.tenant_id)
        told, withheld = [], []
        for (document_id, version), footnotes in cited.items():
            try:
                told.append(self._document(document_id, version, principal))
            except NotFound:
                reason = "deleted" if document_id in deleted else self._missing(document_id, version, principal)
                fields = {"document_id": document_id, "version": version, "reason": reason}
                withheld.append({**fields, "footnotes": sorted(footnotes)})
        return told, withheld

    def _document(self, document_id: str, version: int, principal: Principal) -> dict[str, Any]:
        tenant_id, collections, contents = principal.tenant_id, principal.collections, self.contents
        found = contents.version(document_id, tenant_id=tenant_id, collections=collections, version=version)
        text = contents.text(document_id, tenant_id=tenant_id, collections=collections, version=version)
        return {
            "document_id": document_id,
            "version": version,
            "filename": found.filename,
            "media_type": found.media_type,
            "bytes": found.bytes,
            "sha256": found.sha256,
            "text_sha256": hashlib.sha256(text.encode()).hexdigest(),
            "text_characters": len(text),
        }

    def _missing(self, document_id: str, version: int, principal: Principal) -> str:
        """Why a version is not read: its document is elsewhere by now, or the version alone is deleted."""
        try:
            self.contents.version(document_id, tenant_id=principal.tenant_id, version=version)
        except NotFound:
            return "version_deleted"
        return "not_readable"

    def _rows(self, request_id: str, tenant_id: str) -> tuple[list[LedgerLine], dict[str, tuple[NotedPrice, ...]]]:
        """The lines of the request in the order of the ledger, and the prices of its calls."""
        only = LineFilter(request_id=request_id)
        end = LATEST * 1_000_000
        lines, _ = self.ledger.page(tenant_id=tenant_id, start=0, end=end, only=only, limit=_MOST_ROWS)
        calls = (line.event_id for line in lines if not line.adjustment_id)
        return [*lines], {call: self.ledger.event(call, tenant_id=tenant_id).prices for call in calls}


def bill_of(rows: Sequence[LedgerLine], prices: Mapping[str, Sequence[NotedPrice]]) -> dict[str, Any]:
    """The rows of a bill and their sum. A row without a price adds nothing to the cost and is counted."""
    priced = [row.cost_pico for row in rows if row.cost_pico is not None]
    return {
        "rows": [_row(row, () if row.adjustment_id else prices.get(row.event_id, ())) for row in rows],
        "total": {
            "cost": decimal(sum(priced)) if priced else None,
            "currency": rows[0].currency if rows else None,
            "input_tokens": sum(row.measures.input_tokens for row in rows),
            "output_tokens": sum(row.measures.output_tokens for row in rows),
            "rows_without_price": len(rows) - len(priced),
        },
    }


def _row(row: LedgerLine, prices: Iterable[NotedPrice]) -> dict[str, Any]:
    return {
        "event_id": row.event_id,
        "adjustment_id": row.adjustment_id or None,
        "reason": row.reason or None,
        "operation": row.operation,
        "status": row.status,
        "model": row.model,
        "accepted_at": _moment(row.accepted_at / 1_000_000),
        "settled_at": _moment(row.at / 1_000_000),
        "total_us": row.total_us,
        "input_tokens": row.measures.input_tokens,
        "input_cached_tokens": row.measures.input_cached_tokens,
        "output_tokens": row.measures.output_tokens,
        "prices": [
            {"price_id": one.price_id, "meter": one.meter, "cost_per_token": decimal(one.pico_per_token)}
            for one in prices
        ],
        "cost": None if row.cost_pico is None else decimal(row.cost_pico),
        "currency": row.currency,
    }


def _answer(turn: KeptTurn, record: AnswerRecord | None, *, readable: bool) -> dict[str, Any]:
    """The answer; without its words where it may have some of a document that the caller may not read."""
    made = {} if record is None else record.as_json()
    return {
        "answered_at": _moment(turn.created_at),
        "answered": turn.answered,
        "reason": made.get("reason"),
        "finish_reason": made.get("finish_reason"),
        "model": made.get("model"),
        "standalone_question": turn.standalone if readable else None,
        "text": turn.answer if readable else None,
        "parts": made.get("parts", []) if readable else [],
        "withheld": not readable,
    }


def _footnote(citation: Mapping[str, Any], hidden: set[str]) -> dict[str, Any]:
    """A footnote; of a hidden document its marker and the document's id alone."""
    shown = ("document_id", "version") if citation["document_id"] in hidden else _PASSAGE
    return {name: citation.get(name) for name in (*_MARKER, *shown)}


def _models(rows: Iterable[LedgerLine]) -> list[dict[str, Any]]:
    operations: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for row in rows:
        operations[row.model, row.tokenizer_revision][row.operation] = None
    return [
        {"model": model, "tokenizer_revision": revision or None, "operations": [*of]}
        for (model, revision), of in operations.items()
    ]


def _not_recorded(rows: Iterable[LedgerLine], record: AnswerRecord | None) -> list[str]:
    """What a repetition of the answer would need, and nothing kept."""
    missing = ["footnote_version_at_answer", "models.sha256"]
    if any(row.operation == Operation.CHAT for row in rows):
        missing += ["sampling", "seed", "prompt_token_ids"]
    return [*missing, *(["answer.parts", "answer.reason", "answer.finish_reason"] if record is None else [])]


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
