"""Decides whether Footnote answers or refuses: four stages, in the order in which a question meets them.

1. **Evidence**, before a model reads the sources (`retrieving.evidence`). Score: how relevant the best passage is to
   the question (`evidence_score`). Below `FOOTNOTE_MIN_EVIDENCE` no source is shown. Unless the question asks for an
   answer anyway (`on_no_evidence`), nothing is generated: stage "retrieval", reason "no_evidence",
   `refusals.no_evidence`.
2. **The quotes**, before generation (`refused_before_generation`, `without_generation`). Score: one minus the
   probability of the likeliest quote (`quoting.selection`). Where quotes are the answer there are three outcomes:
   answered; unsure, with the nearest passages: stage "reader", reason "unsure", `refusals.unsure`; and refused:
   stage "reader", reason "not_in_sources", `refusals.refusal`. Where a language model answers, it is called unless
   the question is refused here. `abstention_threshold` replaces `quoting.selection.ANSWERED`.
3. **The first token**, while a model generates (`generating.refusing`; `generation/abstention.py` decides). Score: the
   model's probability of beginning the refusal. From `abstention_threshold` on the model must refuse, below it must
   not; without a threshold it chooses. Stage "model", reason "not_in_sources".
4. **The finished answer** (`generating.refusing`). An answer whose text is a refusal (`refusals.refuses`) is one: stage
   "model", reason "not_in_sources". A strict answer of which nothing was verified is withheld: stage "verifier",
   reason "not_verified". Any other answer of which nothing was verified is shown, followed by quotes where
   `FOOTNOTE_UNCONFIRMED` asks for them (`is_unconfirmed`, docs/adr/0067).

`abstention_threshold` is the question's, else `FOOTNOTE_ABSTENTION_THRESHOLD` (`threshold_for`). The texts are in
`app.answering.languages`.

Example:
    >>> without_generation(question, evidence=evidence, context=context, selection=None).reason
    'no_evidence'
"""

from dataclasses import dataclass, replace

from app.answering.answer import AbstentionReport, Stage
from app.answering.formats import ANSWER_SCHEMA
from app.answering.languages.refusals import no_evidence, refusal, unsure
from app.answering.question import Limits, Question
from app.answering.quoting.quotes import Selection
from retrieval.types import Context

REFUSED = frozenset({"no_evidence", "not_in_sources", "not_verified"})
"""The reasons (`Answer.reason`) of refusals; the others: "unsure", whose text quotes, dry runs and failures."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an answer is given, and where it was refused.

    Attributes:
        reason: `Answer.reason`: "no_evidence", "not_in_sources", "not_verified", "unsure", "dry_run" or "cancelled";
            None for an answer.
        report: The deciding stage with its score and threshold.
        text: The refusal or reply to show where nothing was generated; "" for quotes, a dry run and generated text.
    """

    reason: str | None
    report: AbstentionReport
    text: str = ""


def threshold_for(question: Question, limits: Limits) -> float | None:
    """The probability in (0, 1] of there being no answer from which on a question is refused.

    None leaves that to the span reader and the model.
    """
    asked = question.abstention_threshold
    return limits.abstention_threshold if asked is None else asked


# Stages 1 and 2: whether the engine is called.


def refused_before_generation(question: Question, context: Context, selection: Selection | None) -> bool:
    """Whether a question is refused without sources, or because nothing in them is likely to answer it.

    A question that allows answers without evidence is not refused; nor, in stage 2, one that asks for JSON by
    a schema of its own, which a refusal would not satisfy.
    """
    if question.on_no_evidence == "answer":
        return False
    if not context.sources:
        return True
    refused = selection is not None and selection.decides and selection.outcome == "refused"
    return refused and question.json_schema in {None, ANSWER_SCHEMA}


# The outcome where nothing was generated.


def without_generation(
    question: Question, *, evidence: AbstentionReport, context: Context, selection: Selection | None
) -> Verdict:
    """The verdict where no model was called: a dry run, a refusal, or an answer by quotes.

    Args:
        question: As it was asked.
        evidence: The report of stage 1.
        context: The sources presented, none where stage 1 refused.
        selection: The selected quotes, None where nothing was selected.
    """
    stage: Stage | None = None if context.sources else "retrieval"
    if question.dry_run:
        return Verdict("dry_run", replace(evidence, stage=stage))
    if selection is not None:
        score, threshold = 1 - selection.score, 1 - selection.threshold
        if selection.outcome == "answered":
            return Verdict(None, AbstentionReport(None, score=score, threshold=threshold))
        report = AbstentionReport("reader", score=score, threshold=threshold)
        if selection.outcome == "unsure":
            return Verdict("unsure", report, unsure(question.text))
        return Verdict("not_in_sources", report, refusal(question.text))
    return Verdict("no_evidence", replace(evidence, stage=stage), no_evidence(question.text))
