"""Hypothesis strategies for text as it really comes, and as an adversary would write it."""

from hypothesis import strategies as st

_FRAGMENTS = [
    "word", "a!", " ", "  ", "\n", "\n\n", "\t", ". ", "Ünïcödé", "日本語。", "مرحبا",
    "हिन्दी", "می‌خواهم", "🦆", "👩‍👩‍👧",
    "e\u0301", "\u200b", "\U000e0041", "\r\n", "x" * 120, "<!ENTITY", "# ",
]  # fmt: skip

any_text = st.text(max_size=200)
written_text = st.lists(st.sampled_from(_FRAGMENTS), max_size=80).map("".join)
hostile_text = st.one_of(any_text, written_text, st.text(alphabet=st.characters(), max_size=60))
