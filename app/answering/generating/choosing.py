"""Chooses the sources that a language model reads: those with the likeliest quotes, the likeliest first."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from app.answering.generating.model_class import Asking
from app.answering.generating.named_rows import with_named_rows
from app.answering.languages.question_kind import asks_for_several
from app.answering.states.reading import Selection
from app.answering.states.sources import Grounding
from retrieval.footnote_numbers import numbered
from retrieval.types import Source

_SEVERAL = 2  # times as many sources where several things are asked for


def chosen(
    grounding: Grounding, selection: Selection | None, asking: Asking, *, count_tokens: Callable[[str], int]
) -> tuple[Grounding, Selection | None]:
    """The grounding with the sources that the model reads, numbered from 1, and the selection with their numbers.

    Where nothing was selected, the sources of the best hits are read. Quotes of the other sources keep theirs, numbered
    behind those that are read.

    Args:
        grounding: All sources that fit.
        selection: The quotes in them; None where nothing was selected.
        asking: How many sources the model reads, and of how many tokens.
        count_tokens: Counts a text as the prompt shows it.
    """
    sources = grounding.context.sources
    if asking.passages is None or grounding.summarised or grounding.retrieved.overview is not None:
        return grounding, selection
    likeliest: dict[int, float] = {}
    for number, _, probability in () if selection is None else selection.probabilities:
        likeliest[number] = max(probability, likeliest.get(number, 0.0))
    ordered = sorted(sources, key=lambda source: -likeliest.get(source.number, 0.0))  # of equal ones the best hit
    several = _SEVERAL if asks_for_several(grounding.question.text) else 1
    placed = [numbered(source, place, count_tokens=count_tokens) for place, source in enumerate(ordered)]
    read = _first(placed, sources=several * asking.passages, tokens=several * asking.tokens)
    read = _named(read, tokens=grounding.budget.sources, count_tokens=count_tokens)
    placed[: len(read)] = read
    context = replace(grounding.context, sources=read, tokens=sum(source.tokens for source in read))
    if selection is not None:
        selection = _renumbered(selection, {was.number: now for was, now in zip(ordered, placed, strict=True)})
    return replace(grounding, context=context), selection


def _first(placed: list[Source], *, sources: int, tokens: int) -> tuple[Source, ...]:
    """As many sources as fit, in order, at least one."""
    read: list[Source] = []
    for source in placed[:sources]:
        tokens -= source.tokens
        if read and tokens < 0:
            break
        read.append(source)
    return tuple(read)


def _named(read: tuple[Source, ...], *, tokens: int, count_tokens: Callable[[str], int]) -> tuple[Source, ...]:
    """The sources with the names of columns in their rows, as far as there is room for all; none is left out for it."""
    spare = tokens - sum(source.tokens for source in read)
    named: list[Source] = []
    for place, source in enumerate(read):
        longer = numbered(with_named_rows(source), place, count_tokens=count_tokens)
        more = longer.tokens - source.tokens
        named.append(longer if more <= spare else source)
        spare -= max(more, 0) if more <= spare else 0
    return tuple(named)


def _renumbered(selection: Selection, now: Mapping[int, Source]) -> Selection:
    title = selection.title
    return replace(
        selection,
        quotes=tuple(replace(quote, source=now[quote.source.number]) for quote in selection.quotes),
        probabilities=tuple((now[number].number, span, one) for number, span, one in selection.probabilities),
        title=None if title is None else replace(title, source=now[title.source.number]),
    )
