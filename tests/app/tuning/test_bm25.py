"""app.tuning.bm25 ranks texts by the words they share with a query."""

import numpy as np

from app.tuning.bm25 import Bm25


def test_bm25_puts_the_rare_word_before_the_common_ones() -> None:
    scores = Bm25(["the spring", "the rare7 of winter", "the"]).scores("the rare7 spring, spring")

    assert np.argsort(-scores).tolist()[-1] == 2
    assert Bm25(["the"]).scores("unknown").tolist() == [0.0]
