"""Decides whether Footnote answers or refuses: four stages, in the order in which a question meets them.

1. **Evidence**, before a model reads the sources (`retrieving.evidence`). Score: how relevant the best passage is to
   the question (`evidence_score`). Below `FOOTNOTE_MIN_EVIDENCE` no source is shown. Unless the question asks for an
   answer anyway (`on_no_evidence`), nothing is generated: stage "retrieval", reason "no_evidence",
   `refusals.no_evidence`.
2. **The quotes**, before generation (`without_generation`, `generating.refusing`). Score: one minus the
   probability of the likeliest quote (`quoting.selection`). Where quotes are the answer there are three outcomes:
   answered; unsure, with the nearest passages: stage "reader", reason "unsure", `refusals.unsure`; and refused:
   stage "reader", reason "not_in_sources", `refusals.refusal`. Where a language model answers, it is called unless
   the question is refused here. `abstention_threshold` replaces `states.ANSWERED`.
3. **The first token**, while a model generates (`generating.refusing`; `generation/abstention.py` decides). Score: the
   model's probability of beginning the refusal. From `abstention_threshold` on the model must refuse, below it must
   not; without a threshold it chooses. Stage "model", reason "not_in_sources".
4. **The finished answer** (`generating.refusing`). An answer whose text is a refusal (`refusals.refuses`) is one: stage
   "model", reason "not_in_sources". A strict answer of which nothing was verified is withheld: stage "verifier",
   reason "not_verified". Any other answer of which nothing was verified is shown, followed by quotes where
   `FOOTNOTE_UNCONFIRMED` asks for them (`is_unconfirmed`, docs/adr/0067).

`abstention_threshold` is the question's, else `FOOTNOTE_ABSTENTION_THRESHOLD` (`Limits.refused_from`). The texts are in
`app.answering.languages`.

Example:
    >>> without_generation(grounding, None).reason
    'no_evidence'
"""

from dataclasses import replace
from functools import partial

from app.answering.answers.answer import AbstentionReport, Stage
from app.answering.answers.parts import AnyPart, NoteCode, NotePart, Reason, RefusedPart, paragraphs
from app.answering.languages.refusals import no_evidence, refusal, unsure
from app.answering.question import Question
from app.answering.states.finished import Finished
from app.answering.states.reading import Selection
from app.answering.states.sources import Grounding


def without_generation(grounding: Grounding, selection: Selection | None) -> Finished:
    """The end of an answer for which no model writes: a dry run, a refusal, or one by quotes.

    The text is the refusal, or what leads to the nearest passages; "" for quotes and a dry run.

    Args:
        grounding: The sources; none where stage 1 refused.
        selection: The selected quotes, None where nothing was selected.
    """
    question, evidence = grounding.question, grounding.retrieved.evidence
    found = _verdict(question, evidence, selection, sources=bool(grounding.context.sources))
    note = "", partial(NotePart, code=NoteCode.OTHER_LANGUAGE)
    if grounding.note is not None:
        note = grounding.note.text, partial(note[1], language=grounding.note.language)
    parts: tuple[AnyPart, ...] = ()
    text = found.text
    if found.reason is Reason.UNSURE:
        text, parts = paragraphs(note, (text, partial(NotePart, code=NoteCode.NEAREST_PASSAGES)))
    elif found.reason is not None and found.reason.refuses:
        text, parts = paragraphs((text, partial(RefusedPart, reason=found.reason)), note)
    return replace(found, text=text, parts=parts, probability=None if selection is None else selection.score)


def _verdict(question: Question, evidence: AbstentionReport, selection: Selection | None, *, sources: bool) -> Finished:
    stage: Stage | None = None if sources else "retrieval"
    if question.dry_run:
        return Finished(reason=Reason.DRY_RUN, abstention=replace(evidence, stage=stage))
    if selection is not None:
        score, threshold = 1 - selection.score, 1 - selection.threshold
        if selection.outcome == "answered":
            return Finished(reason=None, abstention=AbstentionReport(None, score=score, threshold=threshold))
        report = AbstentionReport("reader", score=score, threshold=threshold)
        if selection.outcome == "unsure":
            return Finished(reason=Reason.UNSURE, abstention=report, text=unsure(question.text))
        return Finished(reason=Reason.NOT_IN_SOURCES, abstention=report, text=refusal(question.text))
    return Finished(
        reason=Reason.NO_EVIDENCE, abstention=replace(evidence, stage=stage), text=no_evidence(question.text)
    )
