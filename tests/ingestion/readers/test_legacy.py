"""ingestion.readers.legacy: old Office documents go through LibreOffice, and through nothing that they bring along."""

import contextlib
import time
from pathlib import Path
from threading import Thread
from xml.etree.ElementTree import fromstring

import psutil
import pytest

from ingestion.child_extractor import ChildExtractor, find_soffice
from ingestion.errors import LimitExceeded, Malformed, UnsupportedFormat
from ingestion.extraction import LocalExtractor
from ingestion.readers.legacy import converted
from ingestion.types import ExtractionLimits, MediaType
from tests.ingestion.office_files import docx_bytes
from tests.ingestion.test_sniff import compound_file

DOCUMENTS = Path(__file__).resolve().parents[4] / "shared" / "data" / "documents" / "legacy_and_odf"
SCRIPT = """#!/bin/sh
while [ $# -gt 1 ]; do
  case "$1" in
    --outdir) out="$2";;
    --convert-to) format="$2";;
    -env:UserInstallation=file://*) profile="${{1#*file://}}";;
  esac
  shift
done
{what}
"""


def fake_soffice(folder: Path, what: str) -> Path:
    """A program that is called as LibreOffice is, and then does `what`."""
    program = folder / "soffice"
    program.write_text(SCRIPT.format(what=what))
    program.chmod(0o755)
    return program


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "upload"
    path.write_bytes(compound_file("WordDocument"))
    return path


def test_what_libreoffice_makes_of_a_document_is_read(tmp_path: Path, document: Path) -> None:
    (tmp_path / "made").write_bytes(docx_bytes())
    soffice = fake_soffice(tmp_path, f'cp {tmp_path}/made "$out/document.$format"')

    extraction = LocalExtractor(soffice=soffice).extract(document, filename="a.doc")

    assert extraction.title == "Report"
    assert extraction.media_type is MediaType.DOC


def test_without_libreoffice_there_is_advice(document: Path) -> None:
    with pytest.raises(UnsupportedFormat, match=r"save it as \.docx, or install LibreOffice"):
        LocalExtractor().extract(document, filename="a.doc")


def test_its_profile_is_new_and_forbids_macros_links_and_the_network(tmp_path: Path, document: Path) -> None:
    soffice = fake_soffice(
        tmp_path, f'cp "$profile/user/registrymodifications.xcu" {tmp_path}/settings; touch "$out/document.docx"'
    )
    into = tmp_path / "into"
    into.mkdir()

    converted(document, into, MediaType.DOC, soffice=soffice, seconds=60)

    settings = {prop.get("{http://openoffice.org/2001/registry}name"): prop.findtext("value")
                for prop in fromstring((tmp_path / "settings").read_text()).iter("prop")}  # fmt: skip
    assert settings["DisableMacrosExecution"] == "true"
    assert settings["Link"] == "2"
    assert settings["ooInetHTTPProxyName"] == "127.0.0.1"


@pytest.mark.parametrize("what", ["exit 77", "true", 'ln -s /etc/hostname "$out/document.docx"'])
def test_where_it_makes_nothing_the_document_is_malformed(tmp_path: Path, document: Path, what: str) -> None:
    with pytest.raises(Malformed, match="LibreOffice"):
        LocalExtractor(soffice=fake_soffice(tmp_path, what)).extract(document, filename="a.doc")


def test_where_it_takes_too_long_it_is_ended(tmp_path: Path, document: Path) -> None:
    soffice = fake_soffice(tmp_path, "exec sleep 60")

    with pytest.raises(LimitExceeded, match="longer than"):
        LocalExtractor(ExtractionLimits(seconds=0.5), soffice=soffice).extract(document, filename="a.doc")


def ended(pid: int, *, seconds: float) -> bool:
    """Whether a process is gone, or waits only for whoever collects orphans."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.05)
    return False


def started(name: str) -> psutil.Process | None:
    """The process of that name that this one, or one that it started, has started."""
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if process.cmdline()[:2] == ["sleep", name]:
                return process
    return None


def test_libreoffice_ends_with_the_child_and_its_folder_is_removed(tmp_path: Path, document: Path) -> None:
    soffice = fake_soffice(tmp_path, "exec sleep 60.125")
    failures: list[Exception] = []

    def extract() -> None:
        try:
            extractor.extract(document, filename="a.doc")
        except LimitExceeded as error:
            failures.append(error)

    with ChildExtractor(ExtractionLimits(seconds=3), soffice=soffice) as extractor:
        thread = Thread(target=extract)
        thread.start()
        while (process := started("60.125")) is None and thread.is_alive():
            time.sleep(0.05)
        assert process is not None
        folder = Path(process.environ()["TMPDIR"])
        assert folder.is_dir()
        thread.join()

    assert len(failures) == 1
    assert ended(process.pid, seconds=10)
    assert not folder.exists()


@pytest.mark.skipif(not DOCUMENTS.is_dir(), reason="the shared documents do not lie beside this checkout")
@pytest.mark.skipif(find_soffice() is None, reason="LibreOffice is not installed")
@pytest.mark.parametrize("name", ["legacy_sample.doc", "legacy_sample.xls", "legacy_sample.ppt"])
def test_real_documents_are_read_where_libreoffice_is(name: str) -> None:
    expected = LocalExtractor(soffice=find_soffice()).extract(DOCUMENTS / name, filename=name)

    with ChildExtractor(soffice=find_soffice()) as extractor:
        found = extractor.extract(DOCUMENTS / name, filename=name)

    assert expected.text.strip()
    assert found == expected
