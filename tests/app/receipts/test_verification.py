"""Receipts of every kind of answer verify; a changed one is refused, with the reason."""

import hashlib
import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from app.receipts.signing import jwk_of, signed
from app.receipts.verification import ReceiptCheck, hashed, verify
from ingestion.extraction import LocalExtractor
from tests.app.receipts.receipted import (
    FOLLOW_UP,
    GENERATING,
    OFF_TOPIC,
    QUESTION,
    QUOTING,
    SHIPS,
    Receipted,
    written,
)

Fields = dict[str, Any]
Change = Callable[[Fields], object]

OTHER = "A file that nothing cites.\n"
CHANGED = "was changed after it was signed"
STRANGER = Ed25519PrivateKey.generate()


def text_of(path: Path, filename: str) -> str:
    return LocalExtractor().extract(path, filename=filename).text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documents")
    (folder / "below").mkdir()
    (folder / "below" / "renamed").write_text(SHIPS)
    (folder / "other.txt").write_text(OTHER)
    return folder


@dataclass(frozen=True, slots=True)
class Kept:
    """A receipt, the keys of its installation, and the folder with its document."""

    receipt: Fields
    keys: bytes
    folder: Path

    def verified(self, raw: bytes, *, keys: bytes | None) -> list[ReceiptCheck]:
        return [*verify(raw, keys=keys, files=hashed(self.folder), read_text=text_of)]


@pytest.fixture(scope="module")
def kept(served: Receipted, folder: Path) -> Kept:
    receipt = served.receipt(served.ask(by=QUOTING)["id"])
    return Kept(receipt, served.keys(), folder)


def faults(checks: list[ReceiptCheck]) -> str:
    return "\n".join(check.says for check in checks if check.holds is False)


@pytest.mark.parametrize(
    ("question", "by", "answered", "footnotes"),
    [(QUESTION, QUOTING, True, 2), (OFF_TOPIC, QUOTING, False, 0), (QUESTION, GENERATING, True, 1)],
    ids=["quoted", "refused", "generated"],
)
def test_a_receipt_of_each_kind_of_answer_verifies(
    served: Receipted, folder: Path, question: str, by: str, answered: bool, footnotes: int
) -> None:
    answer = served.ask(question, by=by)
    receipt = served.receipt(answer["id"])
    checks = Kept(receipt, served.keys(), folder).verified(written(receipt), keys=served.keys())

    assert [check.holds for check in checks] == [True] * (3 + footnotes), checks
    assert (receipt["question"], receipt["answer"]["text"]) == (question, answer["answer"])
    assert receipt["answer"]["answered"] is answered
    assert [one["kind"] for one in receipt["answer"]["parts"]] == [one["kind"] for one in answer["parts"]]
    assert [one["cited_text"] for one in receipt["footnotes"]] == [one["cited_text"] for one in answer["citations"]]
    assert receipt["bill"]["total"]["cost"] == answer["usage"]["cost"]["value"]
    assert ("seed" in receipt["not_recorded"]) is (by == GENERATING)


def test_a_follow_up_has_a_receipt_of_its_own(served: Receipted, folder: Path) -> None:
    conversation = served.conversation()
    first, second = (served.ask(question, conversation_id=conversation)["id"] for question in (QUESTION, FOLLOW_UP))
    receipt = served.receipt(second)
    checks = Kept(receipt, served.keys(), folder).verified(written(receipt), keys=served.keys())

    assert faults(checks) == ""
    assert receipt["question"] == FOLLOW_UP
    assert served.receipt(first)["question"] == QUESTION
    assert all(row["event_id"].startswith(second) for row in receipt["bill"]["rows"])


def test_without_keys_and_documents_it_says_what_was_not_checked(kept: Kept) -> None:
    checks = [*verify(written(kept.receipt))]

    assert [check.holds for check in checks] == [True, None, True, None]
    assert "the receipt's own: anybody could have made it" in checks[1].says
    assert "No document was looked at" in checks[3].says


def test_another_layout_and_order_of_the_same_json_verifies(kept: Kept) -> None:
    turned = dict(reversed(kept.receipt.items()))
    raw = json.dumps(turned, indent=3, ensure_ascii=True).encode()

    assert faults(kept.verified(raw, keys=kept.keys)) == ""


def edit(*path: Any, to: Any) -> Change:
    """Sets, or for a function changes, what is at a path; `to` may be a value."""

    def change(receipt: Fields) -> None:
        *way, last = path
        at: Any = receipt
        for step in way:
            at = at[step]
        at[last] = to(at[last]) if callable(to) else to

    return change


def both(*changes: Change) -> Change:
    def change(receipt: Fields) -> None:
        for one in changes:
            one(receipt)

    return change


def plus(amount: int) -> Callable[[int], int]:
    return lambda value: value + amount


QUOTE = edit("footnotes", 0, "cited_text", to=lambda words: words.replace("forty", "fifty"))
DEARER = edit("bill", "rows", 0, "cost", to="0.000002500000")
SHIFTED = both(edit("footnotes", 0, "start_char", to=plus(1)), edit("footnotes", 0, "end_char", to=plus(1)))

CHANGES: dict[str, Change] = {
    "a word of the quote": QUOTE,
    "a row of the bill": DEARER,
    "a row is dropped": lambda receipt: receipt["bill"]["rows"].pop(),
    "the total": edit("bill", "total", "cost", to="0.000000000001"),
    "the question": edit("question", to="How many boats did the harbour master log?"),
    "the answer": edit("answer", "text", to=lambda text: text.replace("forty", "fifty")),
    "a range is shifted": SHIFTED,
    "another document": edit("documents", 0, "sha256", to="0" * 64),
    "another version": edit("footnotes", 0, "version", to=2),
    "the time": edit("issued_at", to="2026-01-01T00:00:00.000Z"),
    "a footnote is dropped": lambda receipt: receipt["footnotes"].pop(),
    "a model": edit("models", 0, "model", to="better"),
    "what was not recorded": edit("not_recorded", to=[]),
    "a member more": edit("approved_by", to="the auditor"),
    "another key of its own id": edit("key", to=jwk_of(STRANGER.public_key().public_bytes_raw())),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_changed_after_the_signature_is_refused(kept: Kept, name: str) -> None:
    changed = deepcopy(kept.receipt)
    CHANGES[name](changed)

    for keys in (None, kept.keys):
        assert CHANGED in faults(kept.verified(written(changed), keys=keys))


FORGED: dict[str, tuple[Change, str]] = {
    "a word of the quote": (QUOTE, "Footnote 1 does not stand at its place in 'ships.txt'"),
    "a range is shifted": (SHIFTED, "Footnote 1 does not stand at its place"),
    "a range is longer": (edit("footnotes", 0, "end_char", to=plus(3)), "has 45 characters, and its range has 48"),
    "no words": (edit("footnotes", 0, "cited_text", to=None), "has no words"),
    "a file that is not there": (edit("documents", 0, "sha256", to="0" * 64), "no file in the folder has the SHA-256"),
    "a swapped document": (
        edit("documents", 0, "sha256", to=hashlib.sha256(OTHER.encode()).hexdigest()),
        "does not stand in 'ships.txt', whose text is not the one that was cited",
    ),
    "a document that is not listed": (edit("documents", to=[]), "neither lists nor withholds"),
    "a dearer row": (DEARER, "the cost of the rows is not the total's"),
    "a dearer row and total": (
        both(DEARER, edit("bill", "total", "cost", to="0.000009850000")),
        "is not its tokens at their prices",
    ),
    "a row is dropped": (lambda receipt: receipt["bill"]["rows"].pop(), "the input tokens of the rows is not"),
    "a row twice": (lambda receipt: receipt["bill"]["rows"].append(receipt["bill"]["rows"][0]), "is there twice"),
    "fewer tokens": (edit("bill", "rows", 0, "input_tokens", to=1), "is not its tokens at their prices"),
    "another currency": (edit("bill", "total", "currency", to="eur"), "in another currency than the total"),
    "an unknown operation": (edit("bill", "rows", 0, "operation", to="bribe"), "is of an unknown operation"),
    "an amount of another form": (edit("bill", "rows", 0, "cost", to="1e3"), "bill.rows.0.cost"),
    "another format": (edit("format", to="footnote-receipt/9"), "format"),
    "a member is missing": (lambda receipt: receipt.pop("withheld"), "withheld"),
}


@pytest.mark.parametrize("name", FORGED)
def test_what_a_stranger_signs_is_refused_for_what_is_wrong_and_for_the_signer(kept: Kept, name: str) -> None:
    change, reason = FORGED[name]
    forged = {key: value for key, value in deepcopy(kept.receipt).items() if key not in {"key", "signature"}}
    change(forged)
    raw = written(signed(forged, STRANGER))

    assert reason in faults(kept.verified(raw, keys=None))
    assert CHANGED not in faults(kept.verified(raw, keys=None))
    assert "is not in the file of keys: somebody else signed" in faults(kept.verified(raw, keys=kept.keys))


UNSIGNED: dict[str, tuple[Change, str]] = {
    "no signature": (lambda receipt: receipt.pop("signature"), "no signature of 64 bytes"),
    "half a signature": (edit("signature", to=lambda text: text[:43]), "no signature of 64 bytes"),
    "padded": (edit("signature", to=lambda text: f"{text}=="), "no signature of 64 bytes"),
    "another signature": (edit("signature", to="A" * 86), CHANGED),
    "no key": (lambda receipt: receipt.pop("key"), "no Ed25519 key"),
    "a key of another kind": (edit("key", "kty", to="RSA"), "no Ed25519 key"),
    "a key with another id": (edit("key", "kid", to="mine"), "not the key's own thumbprint"),
    "a short key": (edit("key", "x", to="AAAA"), "not 32 bytes"),
    "a number that is none": (edit("version", to=1e400), "is no JSON"),
}


@pytest.mark.parametrize("name", UNSIGNED)
def test_what_is_not_signed_is_refused(kept: Kept, name: str) -> None:
    change, reason = UNSIGNED[name]
    changed = deepcopy(kept.receipt)
    change(changed)

    assert reason in faults(kept.verified(written(changed), keys=kept.keys))


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "is no JSON"),
        (b"[]", "is no JSON object"),
        (b"{" * 100_000, "is no JSON"),
        (b'{"format": "footnote-receipt/1", "format": "footnote-receipt/1"}', "a name twice"),
        (b"\xff\xfe", "is no JSON"),
        (b'{"format": 1e999}', "a number or a text in it"),
    ],
    ids=["empty", "a list", "deep", "a name twice", "no text", "infinite"],
)
def test_what_is_no_receipt_is_refused(kept: Kept, raw: bytes, reason: str) -> None:
    if b"1e999" in raw:
        raw = written({**kept.receipt, "question": "NUMBER"}).replace(b'"NUMBER"', b"1e999")
    assert reason in faults(kept.verified(raw, keys=kept.keys))


def test_a_signature_of_another_receipt_does_not_fit(served: Receipted, kept: Kept) -> None:
    other = served.receipt(served.ask(by=QUOTING)["id"])

    assert CHANGED in faults(kept.verified(written({**kept.receipt, "signature": other["signature"]}), keys=kept.keys))


@pytest.mark.parametrize(
    ("times", "reason"),
    [
        ({"retired_at": "2026-01-01T00:00:00.000Z"}, "was retired at"),
        ({"created_at": "2999-01-01T00:00:00.000Z"}, "was made at"),
        ({"created_at": "yesterday"}, "has a time that is none"),
        ({"kid": "mine"}, "has no Ed25519 key"),
        ({"x": "AAAA"}, "has no Ed25519 key"),
    ],
    ids=str,
)
def test_a_key_counts_in_its_time_alone(kept: Kept, times: Fields, reason: str) -> None:
    (key,) = json.loads(kept.keys)["keys"]
    keys = json.dumps({"keys": [{**key, **times}]}).encode()

    assert reason in faults(kept.verified(written(kept.receipt), keys=keys))


def test_one_key_by_itself_is_a_file_of_keys(kept: Kept) -> None:
    key = json.dumps(kept.receipt["key"]).encode()

    assert faults(kept.verified(written(kept.receipt), keys=key)) == ""
    assert "no JWK set" in faults(kept.verified(written(kept.receipt), keys=b'{"keys": 1}'))


def test_where_the_text_is_read_otherwise_the_words_have_to_stand_in_it(kept: Kept) -> None:
    def checks(text: str) -> list[ReceiptCheck]:
        files = hashed(kept.folder)
        return [*verify(written(kept.receipt), keys=kept.keys, files=files, read_text=lambda *_: text)]

    shown = checks(f"A new header. {SHIPS}")
    assert faults(shown) == ""
    assert "not the one that was cited" in shown[-1].says
    assert "does not stand in 'ships.txt'" in faults(checks("Nothing of it."))
