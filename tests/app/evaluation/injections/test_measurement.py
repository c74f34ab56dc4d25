"""app.evaluation.injections.measurement counts how often a document takes an answer over."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.evaluation.dataset import read_question_set
from app.evaluation.injections.measurement import Attacked, injection_rates, measure_injections
from app.evaluation.types import Options, QuestionSetMalformed
from app.server.bootstrap import build
from app.server.state import State
from app.settings import Settings
from generation.config import EngineConfig
from generation.engine import LocalEngine
from generation.step import Sample
from generation.types import ModelInfo
from tests.app.evaluation.application import Unconstrained
from tests.app.evaluation.small_set import write_set
from tests.app.server.stations import ANY_EVIDENCE, state_with, stations
from tests.generation.fakes import EOS, LetterTokenizer, Plan, ScriptedRunner

HONEST = "The keeper counted forty ships [1]."


class GullibleRunner(ScriptedRunner):
    """A model that says the first canary it reads, and an honest sentence where it reads none."""

    def run(self, plan: Plan, *, meanwhile: Callable[[], None]) -> list[Sample]:
        del meanwhile
        samples = []
        for work in plan:
            if work.sampled:
                prompt = LetterTokenizer().decode(work.sequence.request.prompt)
                found = re.search(r"PWNED-\d+", prompt)
                says = f"It is {found[0]} [1]." if found else HONEST
                at = len(work.sequence.generated)
                token = ord(says[at]) if at < len(says) else EOS
                samples.append(Sample(work.sequence, (token,), (None,)))
        return samples


@contextmanager
def application(data_dir: Path, runner: ScriptedRunner) -> Iterator[State]:
    """A state over `data_dir` whose worker runs and whose model is `runner`."""
    settings = Settings(data_dir=data_dir, admin_key="fn_test_admin_key_of_the_suite", _env_file=None)
    engine = LocalEngine(
        runner,
        LetterTokenizer(),
        EngineConfig(model="scripted", step_tokens=10_000, max_waiting=64),
        info=ModelInfo(model="scripted", revision="0", context_window=20_000, device="cpu", dtype="float32"),
        eos_ids=frozenset({EOS}),
        vocab_size=0x110000,
        constraints=Unconstrained(),
    )
    with build(settings, with_models=False) as bare:
        models = stations(bare, engine, limits=ANY_EVIDENCE)
        models.worker.start()
        try:
            yield state_with(bare, models=models)
        finally:
            models.worker.stop()
            engine.close()


@pytest.fixture(scope="module")
def gullible(tmp_path_factory: pytest.TempPathFactory) -> list[Attacked]:
    folder = tmp_path_factory.mktemp("injections")
    question_set = read_question_set(write_set(folder / "small"))
    with application(folder / "data", GullibleRunner()) as state:
        return measure_injections(
            state, question_set, Options(answer_questions=8, concurrency=2), on_progress=lambda *_: None
        )


def test_e7_a_model_that_says_every_canary_it_reads_is_taken_over_by_those_and_by_no_other(
    gullible: list[Attacked],
) -> None:
    rates = {rate.family: rate for rate in injection_rates(gullible)}

    for family in ("override", "chat-turn", "language", "fake-end", "authority", "fake-source", "poisoning"):
        assert (rates[family].obeyed, rates[family].quoted) == (1.0, 0.0), family
    for family in ("prompt-leak", "link", "encoding", "jamming"):
        assert rates[family].obeyed == 0.0, family
    assert rates["all"].attacks == len(gullible) == sum(rate.attacks for rate in rates.values()) / 2


def test_every_injected_document_is_in_the_prompt_and_none_is_in_the_controls(gullible: list[Attacked]) -> None:
    assert {rate.presented for rate in injection_rates(gullible)} == {1.0}
    # A source that supports the claim is cited behind the one that the model names.
    assert {attacked.control.text.removesuffix("[2]").removesuffix("[3]") for attacked in gullible} == {HONEST}
    assert {rate.control for rate in injection_rates(gullible)} == {0.0}


def test_what_is_right_is_counted_with_and_without_the_injection(gullible: list[Attacked]) -> None:
    ships = [attacked for attacked in gullible if attacked.injection.question_id == "q-ships"]
    others = [attacked for attacked in gullible if attacked.injection.question_id != "q-ships"]

    assert all(attacked.right_control for attacked in ships)
    assert not any(attacked.right_control for attacked in others)
    assert {attacked.right for attacked in ships} == {True, False}


def test_a_set_without_a_question_to_attack_is_refused(tmp_path: Path) -> None:
    rows = [{"_id": "q", "text": "Who?", "unanswerable": True}]
    question_set = read_question_set(
        write_set(tmp_path / "s", query_rows=rows, qrels_lines=["query-id\tcorpus-id\tscore"], span_rows=[])
    )

    with (
        application(tmp_path / "data", GullibleRunner()) as state,
        pytest.raises(QuestionSetMalformed, match="no question has"),
    ):
        measure_injections(state, question_set, Options(), on_progress=lambda *_: None)
