"""retrieval.span_reader points into passages, alike alone and in company, and loads only what fits its base."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.tuning.span_reader.training import trained_weights
from retrieval.errors import ReaderUnavailable
from retrieval.reader_config import Calibration
from retrieval.span_model import MOST_ANSWER_TOKENS, OVERLAP_TOKENS, WINDOW_TOKENS, SpanModel, windows_of
from retrieval.span_reader import EncoderSpanReader, save_reader
from retrieval.types import Pointer, Span
from tests.retrieval.reader_folder import VOCABULARY, build_base, trained, word_model

FLAT = Calibration(slope=0.1, bias=0, threshold=0.5)  # random margins are wide: this keeps probabilities apart
QUESTION = "the revenue of acme"
PASSAGES = [
    "acme revenue rose in spring",
    "",
    "cats",
    "the dogs of acme fell . " * 80,
    "winter, Spring and the café of ACME's dogs",
    "  \n ",
    "revenue fell of cats",
]
texts = st.lists(
    st.one_of(
        st.sampled_from([*VOCABULARY, "spring" * 30]),
        st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=6),
        st.sampled_from(["가", "é", "e\u0301", "\u200d", "ﬁ", "\ufffd", "\x00", "漢字", "👩‍👩‍👧", " \u0301"]),
    ),
    max_size=30,
).map(" ".join)


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_base(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def folder(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained reader as training leaves it."""
    made = tmp_path_factory.mktemp("readers") / "span-tiny"
    save_reader(trained_weights(trained(base)), made)
    return made


@pytest.fixture(scope="module")
def reader(folder: Path, base: Path) -> EncoderSpanReader:
    return EncoderSpanReader.load(folder, base, calibration=FLAT, device="cpu", dtype="float32")


def batched(model: Any, base: Path, *, batch_tokens: int, calibration: Calibration = FLAT) -> EncoderSpanReader:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return EncoderSpanReader(
        model,
        tokenizer,
        name="tiny",
        revision="0",
        calibration=calibration,
        batch_tokens=batch_tokens,
    )


def agree(left: list[Pointer | None], right: list[Pointer | None]) -> None:
    assert [one and (one.start, one.end) for one in left] == [one and (one.start, one.end) for one in right]
    assert [one.probability for one in left if one] == pytest.approx(
        [one.probability for one in right if one], abs=1e-5
    )


def test_a_passage_is_read_alike_alone_and_among_others(reader: EncoderSpanReader) -> None:
    together = reader.read(QUESTION, PASSAGES)

    agree(together, [reader.read(QUESTION, [passage])[0] for passage in PASSAGES])
    agree(together[::-1], reader.read(QUESTION, PASSAGES[::-1]))
    assert [one is None for one in together] == [not passage.strip() for passage in PASSAGES]
    assert len({one.probability for one in together if one}) == 5, "else any order would pass"


def test_pointers_are_those_of_the_slow_reference(base: Path) -> None:
    """Each window alone through the model, every span compared, the best of a passage's windows taken."""
    import torch
    from tokenizers import Tokenizer

    model = trained(base)
    tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    calibration = Calibration(slope=0.1, bias=-0.5, threshold=0.5)
    expected: list[Pointer | None] = []
    for passage in PASSAGES:
        found = []
        for window in windows_of(tokenizer, QUESTION, passage):
            with torch.inference_mode():
                starts, ends = (scores[0].tolist() for scores in model([window]))
            for i in range(window.first, window.first + len(window.offsets)):
                for j in range(i, min(i + MOST_ANSWER_TOKENS, window.first + len(window.offsets))):
                    characters = window.offsets[i - window.first][0], window.offsets[j - window.first][1]
                    found.append((starts[i] + ends[j] - starts[0] - ends[0], characters))
        margin, characters = max(found, default=(0.0, (0, 0)))
        expected.append(Pointer(*characters, calibration.probability(margin)) if found else None)

    for batch_tokens in (1, 100, 4096):
        agree(
            batched(model, base, batch_tokens=batch_tokens, calibration=calibration).read(QUESTION, PASSAGES), expected
        )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(question=texts, passages=st.lists(texts, max_size=5))
def test_every_pointer_is_a_slice_of_its_passage(reader: EncoderSpanReader, question: str, passages: list[str]) -> None:
    pointers = reader.read(question, passages)

    assert len(pointers) == len(passages)
    for passage, pointer in zip(passages, pointers, strict=True):
        if pointer is None:
            assert reader.count_tokens(question, [passage]) == 0
        else:
            assert 0 <= pointer.start < pointer.end <= len(passage)
            assert passage[pointer.start : pointer.end].strip()
            assert 0 <= pointer.probability <= 1


@pytest.fixture(scope="module")
def finder(tmp_path_factory: pytest.TempPathFactory) -> EncoderSpanReader:
    """Points from "spring" to "winter", wherever they are."""
    base = build_base(tmp_path_factory.mktemp("wide"), hidden=64)
    return batched(word_model(base, first="spring", last="winter"), base, batch_tokens=4096)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=st.integers(0, 3 * WINDOW_TOKENS), after=st.integers(0, 2 * WINDOW_TOKENS))
def test_a_long_passage_is_read_as_well_as_a_short_one_wherever_the_answer_is(
    finder: EncoderSpanReader, before: int, after: int
) -> None:
    answer = "spring of the winter"
    passage = "cats " * before + answer + " dogs" * after

    short, long = finder.read(QUESTION, [answer, passage])

    assert short is not None
    assert long is not None
    assert (short.start, short.end) == (0, len(answer))
    assert passage[long.start : long.end] == answer
    assert long.probability == pytest.approx(short.probability, abs=1e-4)
    assert long.probability > 0.5


def test_where_nothing_answers_none_is_likelier(finder: EncoderSpanReader) -> None:
    (pointer,) = finder.read(QUESTION, ["the dogs fell"])

    assert pointer is not None
    assert pointer.probability < 0.5


def test_a_question_without_words_and_no_passages_are_read_too(reader: EncoderSpanReader) -> None:
    assert reader.read("", []) == []
    assert reader.count_tokens("", []) == 0
    assert reader.count_tokens("", ["cats"]) == 4  # [CLS] [SEP] cats [SEP]
    (pointer,) = reader.read(" ", ["acme cats"])
    assert pointer is not None


def test_tokens_are_those_of_every_window(reader: EncoderSpanReader) -> None:
    # [CLS] the revenue of acme [SEP] cats [SEP]
    assert reader.count_tokens(QUESTION, ["cats"]) == 8
    assert reader.count_tokens(QUESTION, ["cats", "", "cats dogs"]) == 17
    # 320 tokens, and behind the last 64 of them the ten that did not fit
    assert (
        reader.count_tokens(QUESTION, ["cats " * (WINDOW_TOKENS - 7 + 10)]) == WINDOW_TOKENS + 7 + OVERLAP_TOKENS + 10
    )


def test_each_batch_reports_the_tokens_read_so_far_and_can_end_the_reading(base: Path) -> None:
    reader = batched(trained(base), base, batch_tokens=1)
    pieces = [[Span(0, len(passage))] for passage in PASSAGES]
    reported: list[int] = []

    def stop(tokens: int) -> None:
        reported.append(tokens)
        raise InterruptedError

    with pytest.raises(InterruptedError):
        reader.mark(QUESTION, PASSAGES, pieces, on_batch=stop)
    assert len(reported) == 1, "no batch follows"

    first, reported = reported[0], []
    reader.mark(QUESTION, PASSAGES, pieces, on_batch=reported.append)
    assert reported[0] == first
    assert len(reported) > 1
    assert reported == sorted(set(reported)), "each batch has tokens"
    assert reported[-1] == reader.count_tokens(QUESTION, PASSAGES)


def test_a_special_token_in_a_passage_is_only_text(reader: EncoderSpanReader) -> None:
    # "[", "sep" and "]": the name is not in the vocabulary, so it is one unknown word
    assert reader.count_tokens(QUESTION, ["cats [SEP] dogs"]) == 7 + 2 + 3


def test_threads_take_turns_and_get_their_own_answers(reader: EncoderSpanReader) -> None:
    alone = [reader.read(QUESTION, [passage]) for passage in PASSAGES]

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda passage: reader.read(QUESTION, [passage]), PASSAGES * 3))

    for at, found in enumerate(together):
        agree(found, alone[at % len(PASSAGES)])


def test_what_training_left_is_what_is_loaded(reader: EncoderSpanReader, base: Path, folder: Path) -> None:
    agree(reader.read(QUESTION, PASSAGES), batched(trained(base), base, batch_tokens=4096).read(QUESTION, PASSAGES))
    assert (reader.model, len(reader.revision), reader.threshold) == ("span-tiny", 16, 0.5)
    named = EncoderSpanReader.load(
        folder, base, name="mine", calibration=Calibration(slope=1, bias=0, threshold=0.7), device="cpu"
    )
    assert (named.model, named.revision, named.threshold) == ("mine", reader.revision, 0.7)


def test_another_base_or_other_weights_are_another_revision(
    reader: EncoderSpanReader, base: Path, folder: Path, tmp_path: Path
) -> None:
    other_base = build_base(tmp_path / "base", seed=5)
    save_reader(trained_weights(trained(base, seed=6)), tmp_path / "other")

    over_other_base = EncoderSpanReader.load(folder, other_base, device="cpu")
    other = EncoderSpanReader.load(tmp_path / "other", base, device="cpu")

    assert len({reader.revision, over_other_base.revision, other.revision}) == 3


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_reads_nearly_the_same(folder: Path, base: Path, dtype: Any) -> None:
    half = EncoderSpanReader.load(folder, base, calibration=FLAT, device="cpu", dtype=dtype)
    whole = EncoderSpanReader.load(folder, base, calibration=FLAT, device="cpu", dtype="float32")

    for left, right in zip(half.read(QUESTION, PASSAGES), whole.read(QUESTION, PASSAGES), strict=True):
        assert (left is None) == (right is None)
        if left and right:
            assert left.probability == pytest.approx(right.probability, abs=0.1)


def test_weights_are_half_precision_and_only_those_that_training_changed(folder: Path) -> None:
    from safetensors.torch import load_file

    weights = load_file(folder / "model.safetensors")

    assert {str(weight.dtype) for weight in weights.values()} == {"torch.float16"}
    assert {name.split(".layer.")[-1][0] for name in weights if not name.startswith("head.")} == {"1"}
    assert {name for name in weights if name.startswith("head.")} == {"head.weight", "head.bias"}
    assert [file.name for file in folder.iterdir()] == ["model.safetensors"]


def test_a_weight_beyond_half_precision_is_not_saved(tmp_path: Path) -> None:
    import torch

    with pytest.raises(ValueError, match="too large for half precision"):
        save_reader({"head.bias": torch.tensor([1e6, 0.0])}, tmp_path / "reader")

    assert not (tmp_path / "reader").exists()


def rewritten(base: Path, folder: Path, change: str) -> Path:
    """A reader whose weights do not fit the base in the way `change` says."""
    import torch

    weights = trained_weights(trained(base))
    if change == "no head":
        del weights["head.bias"]
    elif change == "unknown name":
        weights["encoder.encoder.layer.9.output.dense.bias"] = torch.zeros(16)
    elif change == "other shape":
        weights["head.weight"] = torch.zeros(2, 24)
    save_reader(weights, folder)
    return folder


@pytest.mark.parametrize("change", ["no head", "unknown name", "other shape"])
def test_weights_that_do_not_fit_the_base_are_refused(base: Path, tmp_path: Path, change: str) -> None:
    with pytest.raises(ReaderUnavailable, match=r'"reader" was trained on another model than base\d*: its weights'):
        EncoderSpanReader.load(rewritten(base, tmp_path / "reader", change), base, device="cpu")


@pytest.mark.parametrize(
    "damage", ["no folder", "no weights", "cut weights", "no base", "no tokenizer", "bad tokenizer", "bad config"]
)
def test_damaged_or_missing_files_are_refused_without_telling_where_they_lie(
    base: Path, folder: Path, tmp_path: Path, damage: str
) -> None:
    own, own_base = tmp_path / "reader", tmp_path / "base"
    own.mkdir()
    (own / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
    own_base.mkdir()
    for file in base.iterdir():
        (own_base / file.name).write_bytes(file.read_bytes())
    if damage == "no folder":
        own = tmp_path / "absent"
    elif damage == "no weights":
        (own / "model.safetensors").unlink()
    elif damage == "cut weights":
        (own / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:-100])
    elif damage == "no base":
        own_base = tmp_path / "absent"
    elif damage == "no tokenizer":
        (own_base / "tokenizer.json").unlink()
    elif damage == "bad tokenizer":
        (own_base / "tokenizer.json").write_text("{}")
    else:
        (own_base / "config.json").write_text(json.dumps({"model_type": "no such"}))

    with pytest.raises(ReaderUnavailable, match="missing or damaged") as refusal:
        EncoderSpanReader.load(own, own_base, device="cpu")
    assert str(tmp_path) not in str(refusal.value)


def test_a_base_of_another_kind_is_refused(tmp_path: Path) -> None:
    short = build_base(tmp_path / "short", positions=128)
    bare = build_base(tmp_path / "bare", vocabulary=[word for word in VOCABULARY if word != "[SEP]"])
    save_reader(trained_weights(trained(short)), tmp_path / "over-short")
    save_reader(trained_weights(trained(bare)), tmp_path / "over-bare")

    with pytest.raises(ReaderUnavailable, match="needs a model that reads 320 tokens at once"):
        EncoderSpanReader.load(tmp_path / "over-short", short, device="cpu")
    with pytest.raises(ReaderUnavailable, match=r"needs a tokenizer with \[CLS\] and \[SEP\]"):
        EncoderSpanReader.load(tmp_path / "over-bare", bare, device="cpu")


def test_scores_that_are_no_numbers_are_an_error(base: Path) -> None:
    import torch

    model = trained(base)
    with torch.no_grad():
        model.head.bias.fill_(torch.nan)

    with pytest.raises(ReaderUnavailable, match="no numbers"):
        batched(model, base, batch_tokens=4096).read(QUESTION, ["cats"])


@given(
    slope=st.floats(1e-3, 1e3),
    bias=st.floats(-1e3, 1e3),
    margins=st.lists(st.floats(-4e4, 4e4), min_size=2, max_size=5),
)
def test_a_probability_never_falls_as_the_margin_rises(slope: float, bias: float, margins: list[float]) -> None:
    found = [Calibration(slope=slope, bias=bias, threshold=0.5).probability(margin) for margin in sorted(margins)]

    assert found == sorted(found)
    assert 0 <= found[0] <= found[-1] <= 1


def test_a_calibration_is_the_logistic_function_of_the_margin() -> None:
    calibration = Calibration(slope=2, bias=-1, threshold=0.5)

    assert calibration.probability(0.5) == 0.5
    assert calibration.probability(1.5) == pytest.approx(0.880797)
    assert calibration.probability(-0.5) == pytest.approx(0.119203)


@pytest.mark.parametrize("wrong", [{"slope": 0.0}, {"slope": -1.0}, {"bias": float("nan")}, {"threshold": 1.5}])
def test_a_calibration_that_keeps_no_order_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        Calibration(**{"slope": 1.0, "bias": 0.0, "threshold": 0.5, **wrong})


def test_a_reader_saved_with_tags_tells_the_evidence_of_every_piece(base: Path, tmp_path: Path) -> None:
    import torch

    torch.manual_seed(3)
    with_tags = SpanModel.from_base(base, tags=True)
    without = SpanModel.from_base(base)
    passage, pieces = "Revenue rose in spring. Cats fell.", [Span(0, 23), Span(24, 34)]
    marked = []
    for name, model in (("tags", with_tags), ("none", without)):
        save_reader(dict(model.named_parameters()), tmp_path / name)
        reader = EncoderSpanReader.load(tmp_path / name, base, device="cpu", dtype="float32")
        marked.append(reader.mark(QUESTION, [passage], [pieces])[0])

    tagged, plain = marked
    assert all(one is not None and one.evidence is not None for one in tagged)
    assert len({one.evidence for one in tagged if one}) == 2, "each piece has its own"
    assert all(one is not None and one.evidence is None for one in plain)
