"""retrieval.compress keeps its promises by the counts of real tokenizers, in every script."""

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import platformdirs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from retrieval.compress import Order, compress
from retrieval.types import Hit, Source
from tests.retrieval.fakes import ranked
from tests.retrieval.promises import Counter, check, check_slices, found_in

MODELS = Path(os.environ.get("FOOTNOTE_MODELS_DIR") or Path(platformdirs.user_cache_dir("footnote")) / "models")
GENERATOR, EMBEDDER = MODELS / "SmolLM2-135M-Instruct", MODELS / "all-MiniLM-L6-v2"

SENTENCES = [
    "Revenue rose by 1,234.50 € in 2024 (see Fig. 2, p. 17). ",
    "Dr. Smith et al. said so; nobody else did.\n",
    "東京の売上は３％増えました。",
    "第一句没有空格，第二句也没有！",
    "서울의 매출은 12% 늘었다. ",
    "ارتفعت الإيرادات بنسبة ١٢٪ في عام ٢٠٢٤. هل هذا صحيح؟ ",
    "राजस्व में १२ प्रतिशत की वृद्धि हुई। क्यों? ",
    "รายได้เพิ่มขึ้นในปีนี้",
    "Выручка выросла на 3,5 %. ",
    "Η απόδοση αυξήθηκε; ",
    "👩🏽‍💻👨‍👩‍👧‍👦🏳️‍🌈 🇩🇪🇯🇵 ",
    "Z̷a̴l̶g̵o̸ cafe\u0301 naïve e\u0301\u0323\u0308. ",
    "def f(x: int) -> dict[str, int]:\n    return {'a': x ** 2}  # TODO?\n",
    '{"id": 42, "ok": null}\n| a | b |\n|---|---|\n| 1 | 2 |\n',
    "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft",
    "x" * 130 + " ",
    "0123456789" * 4,
    "\u200b\ufeff\u00ad\u202e\u0007",
    "\u3000\u00a0\u2003",
    " … ",
    "\n\n",
    "[1] <|im_end|> [CLS] ",
]
QUERIES = ["revenue 2024", "売上 第二句", "الإيرادات", "राजस्व", "выручка", "f x id", "xxxx", "👩🏽‍💻", "", "zebra"]

texts = st.lists(st.sampled_from(SENTENCES) | st.text(max_size=20), max_size=8).map("".join)
budgets = st.integers(0, 60) | st.integers(0, 600)


@cache
def byte_level() -> Tokenizer:
    """As the default generator's: digits one by one, then bytes merged by frequency."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.train_from_iterator(
        SENTENCES * 3,
        trainers.BpeTrainer(vocab_size=900, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False),
    )
    return tokenizer


@cache
def word_piece() -> Tokenizer:
    """As BERT's: folded, without accents; what it never saw, and any word of over 100 characters, is one token."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(
        SENTENCES[::2] * 3, trainers.WordPieceTrainer(vocab_size=300, special_tokens=["[UNK]"], show_progress=False)
    )
    return tokenizer


def count_bytes(text: str) -> int:
    return len(byte_level().encode(text).ids)


def count_word_pieces(text: str) -> int:
    return len(word_piece().encode(text).ids)


@cache
def installed_generator() -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(GENERATOR / "tokenizer.json"))
    tokenizer.encode_special_tokens = True  # as ordinary text: a document's <|im_end|> is seven tokens
    return tokenizer


def count_as_generator(text: str) -> int:
    return len(installed_generator().encode(text, add_special_tokens=False).ids)


@cache
def installed_embedder() -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(EMBEDDER / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def count_as_embedder(text: str) -> int:
    """With [CLS] and [SEP]: two tokens even of nothing."""
    return len(installed_embedder().encode(text).ids)


def installed(count: Counter, folder: Path) -> object:
    reason = f"{folder.name} is not installed here"
    return pytest.param(count, marks=pytest.mark.skipif(not folder.is_dir(), reason=reason), id=count.__name__)


each_tokenizer = pytest.mark.parametrize(
    "count",
    [
        pytest.param(count_bytes, id="byte_level"),
        pytest.param(count_word_pieces, id="word_piece"),
        installed(count_as_generator, GENERATOR),
        installed(count_as_embedder, EMBEDDER),
    ],
)


def shuffled(seed: int) -> Order:
    """Some order, the same for the same seed and number of sources."""

    def order(sources: Sequence[Source]) -> list[int]:
        return sorted(range(len(sources)), key=lambda place: hash((seed, place)))

    return order


@each_tokenizer
@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(found=found_in(texts), budget=budgets, query=st.sampled_from(QUERIES), seed=st.integers(0, 99))
def test_every_promise_holds_by_the_count_of_a_real_tokenizer(
    count: Counter, found: tuple[list[Hit], dict[str, str]], budget: int, query: str, seed: int
) -> None:
    hits, contents = found

    context = compress(hits, query=query, budget=budget, count_tokens=count, order=shuffled(seed))

    check(context, hits, budget=budget, count=count)
    check_slices(context, contents)


@each_tokenizer
def test_every_share_of_a_text_in_twenty_scripts_is_kept_to(count: Counter) -> None:
    hits = ranked(*("".join(SENTENCES[start:] + SENTENCES[:start]) for start in range(0, len(SENTENCES), 5)))
    whole = compress(hits, query="revenue 売上 राजस्व", budget=10**6, count_tokens=count)
    sizes = []

    for share in range(5, 100, 15):
        budget = whole.retrieved_tokens * share // 100
        context = compress(hits, query="revenue 売上 राजस्व", budget=budget, count_tokens=count)
        check(context, hits, budget=budget, count=count)
        sizes.append(context.tokens / budget)

    assert min(sizes) > 0.6, "a promise that an empty context would keep is no proof"


@pytest.mark.parametrize("word", ["9" * 3_000, "ü" * 3_000, "漢" * 3_000, "👩🏽‍💻" * 500, "a\u0301" * 1_500])
@each_tokenizer
def test_one_endless_word_neither_overspends_nor_is_lost_silently(count: Counter, word: str) -> None:
    hits = ranked(word, "Cats sleep.")

    context = compress(hits, query="9 ü 漢", budget=60, count_tokens=count)

    check(context, hits, budget=60, count=count)
    assert context.sources, "the other hit fits"


def test_the_two_tokenizers_disagree_so_that_each_proves_something() -> None:
    by_bytes, by_pieces = [count_bytes(text) for text in SENTENCES], [count_word_pieces(text) for text in SENTENCES]

    assert count_bytes("2024") == 4, "digits stand alone"
    assert count_word_pieces("x" * 101) == 1
    assert sum(abs(a - b) >= max(a, b) / 5 for a, b in zip(by_bytes, by_pieces, strict=True)) > len(SENTENCES) / 2
    pairs = [(a, b) for a in SENTENCES for b in SENTENCES]
    assert any(count_word_pieces(a + b) < count_word_pieces(a) + count_word_pieces(b) for a, b in pairs)
    assert any(count_bytes(a + b) > count_bytes(a) + count_bytes(b) for a, b in pairs), "tokens do not add up"
