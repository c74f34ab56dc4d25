"""retrieval.memo caches results per tenant, within its size limit."""

from hypothesis import given
from hypothesis import strategies as st

from retrieval.memo import Memo, remembered
from retrieval.sentences import sentence_spans, unit_spans
from retrieval.words import terms


class Counted:
    """A function of a text that counts how often it is really asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.length = remembered(self._length)

    def _length(self, text: str) -> int:
        self.asked.append(text)
        return len(text)


def test_the_same_text_is_worked_out_once_for_a_tenant() -> None:
    memo, counted = Memo(), Counted()

    with memo.of("t1"):
        assert [counted.length("four"), counted.length("four")] == [4, 4]

    assert counted.asked == ["four"]


def test_what_one_tenant_asked_is_worked_out_again_for_another() -> None:
    memo, counted = Memo(), Counted()

    for tenant in ("t1", "t2"):
        with memo.of(tenant):
            counted.length("four")

    assert counted.asked == ["four", "four"]


def test_nothing_is_remembered_where_no_memory_is_in_use() -> None:
    memo, counted = Memo(), Counted()
    with memo.of("t1"):
        pass

    counted.length("four")
    counted.length("four")

    assert counted.asked == ["four", "four"]
    assert memo.characters == 0


def test_the_oldest_goes_first_and_the_bound_holds() -> None:
    memo, counted = Memo(most_characters=10), Counted()

    with memo.of("t1"):
        for text in ("aaaa", "bbbb", "cccc", "aaaa"):
            counted.length(text)
            assert memo.characters <= 10

    assert counted.asked == ["aaaa", "bbbb", "cccc", "aaaa"]


def test_a_text_too_long_for_a_passage_is_not_kept() -> None:
    memo, counted = Memo(), Counted()

    with memo.of("t1"):
        counted.length("a" * 20_000)

    assert memo.characters == 0


@given(texts=st.lists(st.text(alphabet="Ab. \n1日。", max_size=40), max_size=8))
def test_with_a_memory_every_text_reads_as_without(texts: list[str]) -> None:
    memo = Memo(most_characters=60)
    plain = [(terms(text), sentence_spans(text), unit_spans(text)) for text in texts]

    with memo.of("t1"):
        for _ in range(2):
            assert [(terms(text), sentence_spans(text), unit_spans(text)) for text in texts] == plain
