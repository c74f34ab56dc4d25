"""retrieval.candidate_judge scores each candidate as if it alone followed the question."""

from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from retrieval.candidate_judge import LanguageModelJudge
from retrieval.errors import JudgeUnavailable
from retrieval.judge_layout import (
    ABOVE_TOKENS,
    BEFORE_TOKENS,
    JUDGE_FILES,
    QUESTION_TOKENS,
    TEXT_TOKENS,
    JudgedText,
    layout,
)
from retrieval.plain_tokenizer import plain_tokenizer
from tests.retrieval.judge_folder import WORDS, build_judge, build_language_model

QUESTION = "when did the plant close ?"
CANDIDATES = (
    JudgedText("report of Acme", "", "the plant in Oslo closed on 4 May ."),
    JudgedText("", "the plant in Oslo closed .", "revenue rose ."),
    JudgedText("report of Acme", "revenue fell .", "it opened on 5 June ."),
)
texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
candidates = st.lists(st.builds(JudgedText, texts, texts, texts.filter(bool)), min_size=1, max_size=5)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_language_model(tmp_path_factory.mktemp("models") / "base")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, base: Path) -> Path:
    return build_judge(tmp_path_factory.mktemp("judges") / "judge", base)


@pytest.fixture(scope="module")
def judge(base: Path, folder: Path) -> LanguageModelJudge:
    return LanguageModelJudge.load(folder, base, device="cpu", dtype="float32")


def reference(base: Path, folder: Path, question: str, one: JudgedText) -> float:
    """The score by transformers' own attention over question and candidate as one text."""
    from transformers import AutoConfig, LlamaModel

    config = AutoConfig.from_pretrained(base)
    config.num_hidden_layers = 3
    model = LlamaModel.from_pretrained(base, config=config, attn_implementation="eager", dtype=torch.float32)
    learnt = load_file(folder / JUDGE_FILES[0])
    for name in learnt:
        if name.endswith(".up"):
            product = name.removesuffix(".up")
            change = learnt[name].float() @ learnt[f"{product}.down"].float()
            model.get_parameter(f"{product}.weight").data += change
    laid_out = layout(plain_tokenizer(base), question, [one])
    with torch.inference_mode():
        state = model(input_ids=torch.tensor([laid_out.ids])).last_hidden_state[0, -1]
    return float(state @ learnt["head.weight"][0].float() + learnt["head.bias"].float())


def test_scores_are_those_of_the_models_own_attention(judge: LanguageModelJudge, base: Path, folder: Path) -> None:
    expected = [reference(base, folder, QUESTION, one) for one in CANDIDATES]

    assert judge.judge(QUESTION, CANDIDATES) == pytest.approx(expected, abs=1e-3)
    assert len({round(score, 2) for score in expected}) == len(expected)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(question=texts.filter(bool), found=candidates)
def test_a_score_does_not_depend_on_the_other_candidates(
    judge: LanguageModelJudge, question: str, found: list[JudgedText]
) -> None:
    together = judge.judge(question, found)
    alone = [judge.judge(question, [one])[0] for one in found]

    assert together == pytest.approx(alone, abs=1e-3)
    assert judge.judge(question, found[::-1]) == pytest.approx(together[::-1], abs=1e-3)


def test_the_question_is_counted_once(judge: LanguageModelJudge, base: Path) -> None:
    alone = [judge.count_tokens(QUESTION, [one]) for one in CANDIDATES]
    laid_out = layout(plain_tokenizer(base), QUESTION, CANDIDATES)
    asked = len(laid_out.prefix)

    assert judge.count_tokens(QUESTION, CANDIDATES) == len(laid_out.ids) == sum(alone) - 2 * asked
    assert laid_out.positions[asked] == asked == laid_out.positions[asked + len(laid_out.branches[0])]
    assert laid_out.ends == [asked + sum(map(len, laid_out.branches[: at + 1])) - 1 for at in range(3)]


def test_long_parts_are_cut(judge: LanguageModelJudge) -> None:
    words = [WORDS[at % len(WORDS)] for at in range(500)]
    long = " ".join(words)
    tokens = judge.count_tokens(long, [JudgedText(long, long, long)])

    assert tokens < QUESTION_TOKENS + ABOVE_TOKENS + BEFORE_TOKENS + TEXT_TOKENS + 40
    end = JudgedText("", f"{long} revenue fell .", "it rose .")
    other = JudgedText("", f"{long} revenue rose .", "it rose .")
    assert judge.judge(QUESTION, [end]) != pytest.approx(judge.judge(QUESTION, [other]), abs=1e-3)


def test_marks_of_a_chat_in_a_passage_are_plain_text(base: Path) -> None:
    tokenizer = plain_tokenizer(base)
    ids = layout(tokenizer, QUESTION, [JudgedText("", "", "it closed <|im_end|>")]).ids

    assert tokenizer.token_to_id("<|im_end|>") not in ids


def test_the_revision_changes_with_the_weights(judge: LanguageModelJudge, base: Path, tmp_path: Path) -> None:
    other = LanguageModelJudge.load(build_judge(tmp_path / "other", base, seed=2), base, device="cpu")

    assert (judge.model, other.model) == ("judge", "other")
    assert len(judge.revision) == 16 and judge.revision != other.revision


def test_a_judge_of_another_model_is_refused(folder: Path, tmp_path: Path) -> None:
    shallow = build_language_model(tmp_path / "shallow", layers=2)

    with pytest.raises(JudgeUnavailable, match="missing or damaged"):
        LanguageModelJudge.load(folder, shallow, device="cpu", dtype="float32")


@pytest.mark.parametrize("lost", ["judge.safetensors", "tokenizer.json", "config.json", "model.safetensors"])
def test_a_missing_file_is_refused(folder: Path, tmp_path: Path, lost: str) -> None:
    base, judge = build_language_model(tmp_path / "base"), tmp_path / "judge"
    build_judge(judge, base)
    for place in (base, judge):
        (place / lost).unlink(missing_ok=True)

    with pytest.raises(JudgeUnavailable, match='"judge" cannot be loaded') as refusal:
        LanguageModelJudge.load(judge, base, device="cpu", dtype="float32")
    assert str(tmp_path) not in str(refusal.value)


def test_scores_that_are_no_numbers_are_refused(base: Path, folder: Path, tmp_path: Path) -> None:
    learnt = load_file(folder / JUDGE_FILES[0])
    learnt["head.bias"] += torch.inf
    (tmp_path / "broken").mkdir()
    save_file(learnt, tmp_path / "broken" / JUDGE_FILES[0])
    broken = LanguageModelJudge.load(tmp_path / "broken", base, device="cpu", dtype="float32")

    with pytest.raises(JudgeUnavailable, match="no numbers"):
        broken.judge(QUESTION, CANDIDATES)
