"""Holds the beginning of a generated answer back while it may be a refusal, which the nearest quotes then replace."""

from app.answering.languages.refusals import refuses
from retrieval.sentences import sentence_spans

_LONG = 100  # characters by which a refusal has shown that it is one


class HeldText:
    """The text of one answer that is not shown yet.

    >>> held = HeldText()
    >>> held.feed("The sources do not"), held.feed(" say when. "), held.finish()
    ('', '', 'The sources do not say when. ')
    """

    def __init__(self) -> None:
        self._held: str | None = ""

    def feed(self, text: str) -> str:
        """Take text, return what can be shown now: all of it once a sentence is no refusal."""
        if self._held is None:
            return text
        self._held += text
        whole = [self._held[start:end] for start, end in sentence_spans(self._held)]
        if whole and len(whole[-1]) < _LONG:
            whole.pop()  # may go on to a refusal
        return "" if all(refuses(sentence, cited=False) for sentence in whole) else self.finish()

    def finish(self) -> str:
        """Return what is still held back; "" where all is shown."""
        held, self._held = self._held, None
        return held or ""
