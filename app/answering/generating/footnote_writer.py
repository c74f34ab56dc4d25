"""Writes an answer from generated text, with footnotes that open exact passages.

`FootnoteWriter` reads text while it is generated. It maps the markers that the model wrote to passages, and leaves out
markers of sources that were not presented. A finished sentence, list item or table row without a marker, or with
markers of sources that do not support it, gets one if a presented source supports it (docs/adr/0009). Headings, the
head of a table and code claim nothing. A strict writer leaves out sentences that no passage supports. The format of
markers is defined in `retrieval.footnote_numbers`.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from app.answering.answers.parts import AnyPart, moved
from app.answering.citing.citation import THRESHOLD, Citation, Origin, Pages
from app.answering.languages.refusals import refuses
from app.answering.quoting.rendering import Quotation
from app.answering.verification.verifier import Evidence, Verifier
from retrieval.footnote_numbers import MARKER, MARKER_START, UNCLOSED_MARKER, numbers_in
from retrieval.footnote_numbers import marker as marker_of
from retrieval.types import Source, Span

_TERMINATORS = ".!?…。！？।؟"
_UNSPACED_TERMINATORS = "。！？"
# "Lynch v. Arizona", "the U.S. dollar": a dot that ends no sentence. Sentences joined by mistake are cited as one.
_ABBREVIATION = re.compile(r"\b(?:[^\W\d_]|v|vs|Dr|Mr|Mrs|Ms|St|Jr|Sr|Prof|Inc|Ltd|Co|Corp|Fig|al|e\.g|i\.e)\Z")
_LINE_STARTS = "\n[-*•#|0123456789"
_FENCE = "```"
_CLOSING = f"{_TERMINATORS}\n`"  # what may end a sentence
_ROW = "|"
_CLOSERS = "\"'”’»)]」』"
_WORDS = re.compile(r"\w[\w ]*")


@dataclass(frozen=True, slots=True)
class _Marker:
    number: int
    start: int
    end: int


class FootnoteWriter:
    """Turns generated text into the answer, piece by piece. `answer` is the text that `feed` and `finish` returned.

    Text is held back only while it may become a marker, or while a marker may follow a finished sentence. A strict
    writer holds text back until its sentence is verified: until one of its footnotes is. Text that claims nothing,
    such as the number of a list item, is shown or left out with the sentence behind it.

    >>> writer = FootnoteWriter(context.sources)
    >>> shown = writer.feed("Revenue rose by 8 % [1].") + writer.finish()
    >>> writer.citations[0].cited_text
    """

    def __init__(
        self,
        sources: Sequence[Source],
        *,
        pages: Pages | None = None,
        verifier: Verifier | None = None,
        strict: bool = False,
        refusal: str = "",
    ) -> None:
        """Write against `sources`.

        Args:
            sources: The sources that were presented to the model.
            pages: Where citations open in chunks that cross a page boundary.
            verifier: Verifies claims against the same sources; by default by words alone, without the question.
            strict: Leave out sentences that are not verified.
            refusal: The text of a strict answer of which nothing is left.
        """
        self._pages = pages or {}
        self._sources = {source.number: source for source in sources}
        self._verifier = verifier or Verifier(sources)
        self._strict = strict
        self._refusal = refusal
        self._removed = ""
        self._kept = 0  # end of the text that a strict writer will show
        self._shown = 0
        self._held = ""
        self._written = ""
        self._sentence_start = 0
        self._sentence_markers: list[_Marker] = []
        self._ended = False
        self._code = False
        self._table = False
        self.citations: list[Citation] = []
        self.uncited: list[Span] = []
        self.quotes: list[AnyPart] = []
        self._own: int | None = None  # characters before the quotes

    @property
    def answer(self) -> str:
        """The text shown so far."""
        return self._written[: self._shown]

    @property
    def own(self) -> int:
        """How many characters of the answer are the model's: all but the quotes behind it."""
        return len(self.answer) if self._own is None else self._own

    @property
    def withheld(self) -> bool:
        """Whether the whole answer was left out because nothing in it was verified; a refusal is no answer."""
        return self._kept == 0 and bool(self._removed.strip()) and not refuses(self._removed, cited=False)

    @property
    def claims(self) -> bool:
        """Whether anything in the answer could be verified."""
        return bool(self.citations or self.uncited)

    @property
    def confirmed(self) -> bool:
        """Whether any citation of the answer is verified."""
        return any(citation.verified for citation in self.citations)

    def closes(self, text: str) -> bool:
        """Whether feeding `text` may finish a sentence, which is then verified; that may take a while."""
        return self._ended or any(char in _CLOSING for char in self._held + text)

    def feed(self, text: str) -> str:
        """Take generated text, return the part of the answer that can be shown now."""
        self._held += text
        self._advance(final=False)
        return self._show(self._kept if self._strict else len(self._written))

    def finish(self) -> str:
        """Close the last sentence, and return the text that was held back."""
        self._advance(final=True)
        self._close_sentence(last=True)
        if self._strict:
            self._removed += self._written[self._kept :]
            self._written = self._written[: self._kept]
            if not self._kept and self._removed.strip():
                self._written = self._refusal
        return self._show(len(self._written))

    def quote(self, found: Quotation) -> str:
        """Add a quotation behind the answer or in place of a withheld one. Call it after `finish`.

        Returns:
            The text to show.
        """
        if self.withheld:
            self._removed, self._written, self._shown = "", "", 0
        self._own = len(self._written)
        if self._written:
            self._written += "\n\n"
        at = len(self._written)
        self._written += found.text
        self._kept = len(self._written)
        self.quotes += [moved(part, at) for part in found.parts]
        self.citations += [
            replace(one, answer_start=at + one.answer_start, answer_end=at + one.answer_end) for one in found.citations
        ]
        return self._show(len(self._written))

    def _show(self, end: int) -> str:
        start, self._shown = self._shown, end
        return self._written[start:end]

    def _advance(self, *, final: bool) -> None:
        while self._held:
            consumed = self._step(final=final)
            if not consumed:
                return
            self._held = self._held[consumed:]

    def _step(self, *, final: bool) -> int:
        """Handle the start of the held text; 0 means wait for more."""
        char = self._held[0]
        if (handle := self._handler_of(char)) is not None:
            return handle(final=final)
        if not self._ended and (words := _WORDS.match(self._held)) is not None:
            self._plain(words[0])  # nothing in them ends a sentence or begins a marker
            return words.end()
        if self._code:
            self._plain(char)
            return 1
        if self._ended and char not in _CLOSERS:
            # After 。 a sentence ends without a space; in "3.5" and "example.org" the dot ended nothing.
            if self._written.rstrip(_CLOSERS)[-1:] in _UNSPACED_TERMINATORS:
                self._close_sentence()
            self._ended = False
        if char == "]" and UNCLOSED_MARKER.search(self._written[-32:]):
            return 1  # the rest around a marker that was left out, as in "[[9]1]", must not become one
        abbreviated = char == "." and _ABBREVIATION.search(self._written[self._sentence_start :])
        self._plain(char)
        self._ended = self._ended or (char in _TERMINATORS and not abbreviated)
        return 1

    def _handler_of(self, char: str) -> Callable[..., int] | None:
        """What handles the held text where its first character may be a sign; None where it is plain text."""
        if char == "`":
            return self._ticks
        if self._code:
            return None
        if char == "[":
            return self._bracket
        if char == _ROW and self._sentence.startswith(_ROW):
            return self._row
        if self._ended and char.isspace():
            return self._gap
        return self._line_break if char == "\n" else None

    @property
    def _sentence(self) -> str:
        """The sentence that is written, with its markers."""
        return self._written[self._sentence_start :].lstrip()

    def _ticks(self, *, final: bool) -> int:
        """Handle backticks: three begin or end a code block, in which every bracket is code."""
        count = len(self._held) - len(self._held.lstrip("`"))
        if count < len(_FENCE):
            if count == len(self._held) and not final:
                return 0
            self._plain("`" * count)
            return count
        if not self._code:
            self._close_sentence()
        self._plain(_FENCE)
        self._code = not self._code
        self._ended = not self._code  # a marker may follow
        return len(_FENCE)

    def _row(self, *, final: bool) -> int:
        """Handle the sign between cells: at the end of a row it follows the row's markers."""
        rest = self._held[1:].lstrip(" \t")
        if not rest and not final:
            return 0
        if not rest or rest[0] == "\n":
            self._close_sentence()
        self._plain(_ROW)
        return 1

    def _line_break(self, *, final: bool) -> int:
        """Handle a line break: behind a heading, before a blank line, a list item or a marker it ends the sentence."""
        rest = self._held[1:].lstrip(" \t")
        if not rest and not final:
            return 0
        if not rest or rest[0] in _LINE_STARTS or self._sentence.startswith("#"):
            return self._gap(final=final)
        self._plain("\n")
        return 1

    def _gap(self, *, final: bool) -> int:
        """Handle white space after a sentence: it ends the sentence, unless a marker of the sentence follows."""
        rest = self._held.lstrip()
        if rest.startswith("[") and MARKER.match(rest):
            return len(self._held) - len(rest)  # the marker closes up to the sentence it follows
        if not final and (not rest or MARKER_START.match(rest)):
            return 0
        self._close_sentence()
        self._plain(self._held[0])
        return 1

    def _bracket(self, *, final: bool) -> int:
        match = MARKER.match(self._held)
        if match is None:
            if MARKER_START.match(self._held) and not final:
                return 0
            self._plain("[")
            self._ended = False
            return 1
        for number in numbers_in(match):
            already = any(marker.number == number for marker in self._sentence_markers)
            if number in self._sources and not already:
                self._mark(number)
        return match.end()

    def _plain(self, text: str) -> None:
        if self._strict and not self._written and text.isspace():
            return  # white space behind text that was left out
        self._written += text

    def _mark(self, number: int) -> _Marker:
        start = len(self._written)
        self._written += marker_of(number)
        marker = _Marker(number, start, len(self._written))
        self._sentence_markers.append(marker)
        return marker

    def _close_sentence(self, *, last: bool = False) -> None:
        """Cite the evidence of the sentence that ends here."""
        start, end = self._sentence_start, len(self._written)
        markers, self._sentence_markers = self._sentence_markers, []
        self._ended = False
        claim = _without(self._written, start, end, markers).strip()
        first = len(self.citations)
        supported = False
        for marker in markers:
            evidence = self._verifier.best(claim, number=marker.number)
            assert evidence is not None, "a presented source has at least one passage"
            self.citations.append(self._citation(marker, evidence, "model"))
            supported = supported or evidence.support >= THRESHOLD
        claims = self._claims(claim, last=last)
        if claims and not supported:
            evidence = self._verifier.best(claim)
            if evidence is not None and evidence.support >= THRESHOLD:
                marker = self._mark(evidence.source.number)
                self._sentence_markers = []
                self.citations.append(self._citation(marker, evidence, "attributed"))
            elif not markers:
                lead = len(self._written[start:end]) - len(self._written[start:end].lstrip())
                self.uncited.append(Span(start + lead, start + lead + len(claim)))
        if not claims and not markers:
            self._sentence_start = len(self._written)
            return  # claims nothing
        if self._strict:
            self._keep_or_remove(first)
        self._sentence_start = len(self._written)

    def _claims(self, claim: str, *, last: bool) -> bool:
        """Whether the text that ends here needs a source; the first row of a table names its columns."""
        if claim.startswith(_ROW):
            head, self._table = not self._table, True
            return not head and self._verifier.is_claim(claim, last=last)
        self._table = False
        return not claim.startswith(("#", _FENCE)) and self._verifier.is_claim(claim, last=last)

    def _keep_or_remove(self, first: int) -> None:
        """Keep the sentence just closed if one of its citations, those from index `first` on, is verified."""
        self.uncited.clear()
        if any(citation.verified for citation in self.citations[first:]):
            self._kept = len(self._written)
        else:
            del self.citations[first:]
            self._removed += self._written[self._kept :]
            self._written = self._written[: self._kept]

    def _citation(self, marker: _Marker, evidence: Evidence, origin: Origin) -> Citation:
        place = Span(marker.start, marker.end)
        return Citation.of(
            evidence.source, evidence.span, marker=place, support=evidence.support, origin=origin, pages=self._pages
        )


class VerbatimWriter(FootnoteWriter):
    """Writes generated text unchanged, for JSON answers: a marker would break the document."""

    def __init__(self) -> None:
        super().__init__(())

    def feed(self, text: str) -> str:
        """Take generated text, return all of it."""
        self._written += text
        return self._show(len(self._written))

    def closes(self, text: str) -> bool:  # noqa: ARG002 - JSON is not verified
        """False: nothing is verified."""
        return False

    def finish(self) -> str:
        """The empty text: nothing was held back."""
        return ""


def _without(text: str, start: int, end: int, markers: Sequence[_Marker]) -> str:
    """`text[start:end]` with the markers cut out."""
    pieces, at = [], start
    for marker in markers:
        pieces.append(text[at : marker.start])
        at = marker.end
    return "".join([*pieces, text[at:end]])
