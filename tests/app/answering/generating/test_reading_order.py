"""app.answering.generating.prompts orders sources so that the engine's prefix cache is reused."""

from collections.abc import Sequence

from app.answering.generating.prompt_layout import shown
from app.answering.generating.prompts import reading_order
from retrieval.compress import compress
from retrieval.types import Context, Hit
from tests.app.answering.test_prompt import CharacterTokenizer
from tests.retrieval.fakes import chunk, hit

TOKENIZER = CharacterTokenizer()
HEAD = TOKENIZER.encode("Sources:\n\n")
TEXTS = ("alpha rose", "beta fell", "gamma stood", "delta sank", "epsilon flew")


class Cache:
    """Prompts that were read, and how much of another is their beginning."""

    def __init__(self) -> None:
        self.read: list[list[int]] = []

    def cached(self, prompt: Sequence[int]) -> int:
        def shared(known: Sequence[int]) -> int:
            return next((at for at, (a, b) in enumerate(zip(known, prompt, strict=False)) if a != b), len(known))

        return max((min(shared(known), len(prompt)) for known in self.read), default=0)


def hits(*names: str) -> list[Hit]:
    return [
        hit(chunk(TEXTS.index(name), name, document_id=name, filename=f"{name[0]}.txt"), rank=rank)
        for rank, name in enumerate(names, start=1)
    ]


def ask(cache: Cache, *names: str) -> Context:
    order = reading_order(TOKENIZER, head=HEAD, cached=cache.cached)
    context = compress(hits(*names), query="what", budget=10_000, count_tokens=TOKENIZER.count, order=order)
    prompt = [*HEAD]
    for source in context.sources:
        prompt += shown(TOKENIZER, header=source.header, body=source.body)
    cache.read.append([*prompt, *TOKENIZER.encode("Question: what")])
    return context


def names(context: Context) -> list[str]:
    return [source.hit.chunk.document_id for source in context.sources]


def test_nothing_read_before_leaves_the_strongest_at_the_edges() -> None:
    assert names(ask(Cache(), *TEXTS)) == [TEXTS[0], TEXTS[2], TEXTS[4], TEXTS[3], TEXTS[1]]


def test_another_question_over_the_same_sources_reads_them_in_the_order_they_are_cached() -> None:
    cache = Cache()
    first = ask(cache, *TEXTS[:3])

    again = ask(cache, TEXTS[2], TEXTS[1], TEXTS[0])

    assert names(again) == names(first)
    assert [source.number for source in again.sources] == [1, 2, 3]


def test_new_sources_follow_the_cached_ones() -> None:
    cache = Cache()
    ask(cache, TEXTS[0])

    assert names(ask(cache, TEXTS[3], TEXTS[4], TEXTS[0])) == [TEXTS[0], TEXTS[3], TEXTS[4]]


def test_a_prompt_that_only_begins_alike_is_nothing_to_go_by() -> None:
    cache = Cache()
    cache.read.append([*HEAD, *TOKENIZER.encode("Question: what")])

    assert names(ask(cache, *TEXTS[:3])) == [TEXTS[0], TEXTS[2], TEXTS[1]]


def test_the_reading_order_of_no_sources_is_empty() -> None:
    assert reading_order(TOKENIZER, head=HEAD, cached=lambda prompt: 0)([]) == []
