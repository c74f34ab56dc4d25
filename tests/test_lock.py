"""docker/lock.py writes the packages that pip would install, with their hashes."""

import runpy
from pathlib import Path

import pytest

locked = runpy.run_path(str(Path(__file__).parents[1] / "docker" / "lock.py"))["locked"]


def item(name: str, version: str = "1.0", **download_info: object) -> dict[str, object]:
    return {"metadata": {"name": name, "version": version}, "download_info": download_info}


def test_each_package_is_pinned_to_its_bytes_in_order():
    report = {
        "version": "1",
        "install": [
            item("zope", "8.7", archive_info={"hashes": {"sha256": "ab"}}),
            item("Anyio", "4.1", archive_info={"hashes": {"sha256": "cd", "sha512": "ef"}}),
            item("footnote-rag", dir_info={"editable": True}),
        ],
    }

    assert locked(report) == "Anyio==4.1 --hash=sha256:cd\nzope==8.7 --hash=sha256:ab\n"


def test_a_package_without_a_hash_is_refused_by_name():
    with pytest.raises(ValueError, match="anyio"):
        locked({"version": "1", "install": [item("anyio", archive_info={})]})


def test_another_file_is_not_taken_for_a_report():
    with pytest.raises(ValueError, match="report"):
        locked({})
