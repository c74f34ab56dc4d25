"""`footnote verify` needs a receipt and nothing else; `footnote keys rotate-signing` makes a new key."""

import json
from pathlib import Path

import pytest

from tests.app.cli.command_line import CommandLine
from tests.app.receipts.receipted import QUOTING, SHIPS, receipted, written


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A folder with a receipt, the keys of its server, and the cited file under another name."""
    folder = tmp_path / "kept"
    (folder / "files").mkdir(parents=True)
    with receipted(tmp_path / "data") as served:
        served.upload()
        (folder / "receipt.json").write_bytes(written(served.receipt(served.ask(by=QUOTING)["id"])))
        (folder / "keys.json").write_bytes(served.keys())
    (folder / "files" / "copy").write_text(SHIPS)
    return folder


def test_each_check_is_a_line_and_the_status_tells_whether_all_hold(kept: Path, footnote: CommandLine) -> None:
    before = {*Path.cwd().iterdir()}
    arguments = ["verify", f"{kept}/receipt.json", "--keys", f"{kept}/keys.json", "--documents", f"{kept}/files"]

    assert [line.split()[0] for line in footnote.said(*arguments).splitlines()] == ["holds"] * 5

    (kept / "files" / "copy").write_text(SHIPS.replace("forty", "fifty"))
    lines = footnote.run(*arguments)
    assert (lines.status, [line.split()[0] for line in lines.out.splitlines()]) == (1, ["holds"] * 3 + ["FAILS"] * 2)
    assert "no file in the folder has the SHA-256" in lines.out
    assert [line.split()[0] for line in footnote.said("verify", f"{kept}/receipt.json").splitlines()] == [
        *("holds", "note", "holds", "note")
    ]
    assert {*Path.cwd().iterdir()} == before, "it makes no data directory"


def test_a_changed_receipt_has_status_1_and_a_missing_one_its_reason(kept: Path, footnote: CommandLine) -> None:
    receipt = json.loads((kept / "receipt.json").read_bytes())
    (kept / "receipt.json").write_bytes(written({**receipt, "question": "Another?"}))
    ended = footnote.run("verify", f"{kept}/receipt.json")
    nowhere = footnote.run("verify", f"{kept}/nowhere.json")

    assert (ended.status, "was changed after it was signed" in ended.out) == (1, True)
    assert (nowhere.status, nowhere.out) == (1, "")
    assert "nowhere.json cannot be read: No such file or directory." in nowhere.err


def test_a_new_signing_key_is_named(footnote: CommandLine) -> None:
    first, second = (footnote.said("keys", "rotate-signing").split()[4] for _ in range(2))

    assert len(first) == len(second) == 43
    assert first != second
