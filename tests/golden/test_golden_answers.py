"""Golden answers: every case is answered byte for byte as it was recorded, and writes the same rows to the ledger."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tests.golden.application import make_library
from tests.golden.groups import GROUPS, answers_of, jobs_of
from tests.golden.masking import Masks
from tests.golden.recording import HOW_TO_RECORD, RECORDED, Kept, differences, read

_SHOWN = 3  # cases that differ
_MOST_BYTES = 400_000

_PARTS = 6
"""Of the many questions, so that no test takes minutes on a slow machine, and workers share them."""

EACH_GROUP = pytest.mark.parametrize(("kind", "mode"), GROUPS, ids=["-".join(group) for group in GROUPS])
EACH_PART = pytest.mark.parametrize(
    ("kind", "mode", "part", "parts"),
    [
        pytest.param(kind, mode, part, parts, id=f"{kind}-{mode}-{part}")
        for kind, mode in GROUPS
        for parts in [_PARTS if kind == "questions" else 1]
        for part in range(parts)
    ],
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_library(tmp_path_factory.mktemp("golden") / "library")


@pytest.fixture(scope="module")
def recorded() -> Mapping[str, Kept]:
    return read()


@EACH_GROUP
def test_answers_are_as_recorded(
    kind: str, mode: str, library: Path, recorded: Mapping[str, Kept], tmp_path: Path
) -> None:
    _compare(answers_of(kind, mode, quick=True, library=library, scratch=tmp_path), recorded)


@pytest.mark.exhaustive
@EACH_PART
def test_all_other_answers_are_as_recorded_too(
    kind: str, mode: str, part: int, parts: int, library: Path, recorded: Mapping[str, Kept], tmp_path: Path
) -> None:
    answers = answers_of(kind, mode, quick=False, library=library, scratch=tmp_path, part=slice(part, None, parts))
    _compare(answers, recorded)


def _compare(answers: Iterable[Kept], recorded: Mapping[str, Kept]) -> None:
    told = list(differences(recorded, answers, most=_SHOWN))
    if told:
        pytest.fail("\n\n".join((*told, HOW_TO_RECORD)), pytrace=False)


def test_the_recorded_cases_are_those_of_the_groups(recorded: Mapping[str, Kept]) -> None:
    names = [job.name for group in GROUPS for job in jobs_of(*group)]

    assert len(names) == len(set(names))
    assert set(recorded) == set(names), HOW_TO_RECORD
    assert RECORDED.stat().st_size < _MOST_BYTES


def test_the_quick_cases_have_each_question_and_each_pair_of_mode_form_and_way() -> None:
    jobs = [job for group in GROUPS if group[0] == "questions" for job in jobs_of(*group)]

    def parts(names: list[str]) -> tuple[set[str], set[str]]:
        split = [name.split("/", 1) for name in names]
        return {question for question, _ in split}, {pair for _, pair in split}

    assert parts([job.name for job in jobs if job.quick]) == parts([job.name for job in jobs])


def test_masks_replace_what_differs_between_runs_and_nothing_else() -> None:
    body = (
        '{"id":"req_01jd2x8k3vq5zt7m9n4r6s8w0y","created":1764184000,"support":0.123456789012,"cost":2.5,'
        '"timings_ms":{"queue":0.1,"first_token":null},"other":"doc_01jd2x8k3vq5zt7m9n4r6s8w0y.1.2"}'
    )

    assert Masks().text(body) == (
        '{"id":"<req-1>","created":<time>,"support":0.123457,"cost":2.5,'
        '"timings_ms":{"queue":<ms>,"first_token":null},"other":"<doc-1>.1.2"}'
    )
