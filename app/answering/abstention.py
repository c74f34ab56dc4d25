"""Decides whether Footnote answers or refuses: four stages, in the order in which a question meets them.

1. **Evidence**, before a model reads the sources (`with_evidence`). Score: how relevant the best passage is to
   the question (`evidence_score`). Below `FOOTNOTE_MIN_EVIDENCE` no source is shown. Unless the question asks for an
   answer anyway (`on_no_evidence`), nothing is generated: stage "retrieval", reason "no_evidence",
   `refusals.no_evidence`.
2. **The quotes**, before generation (`refused_before_generation`, `without_generation`). Score: one minus the
   probability of the likeliest quote (`quoting.selection`). Where quotes are the answer there are three outcomes:
   answered; unsure, with the nearest passages: stage "reader", reason "unsure", `refusals.unsure`; and refused:
   stage "reader", reason "not_in_sources", `refusals.refusal`. Where a language model answers, it is called unless
   the question is refused here. `abstention_threshold` replaces `quoting.selection.ANSWERED`.
3. **The first token**, while a model generates (`watched_refusal`; `generation/abstention.py` decides). Score: the
   model's probability of beginning the refusal. From `abstention_threshold` on the model must refuse, below it must
   not; without a threshold it chooses. Stage "model", reason "not_in_sources".
4. **The finished answer** (`after_generation`). An answer whose text is a refusal (`refusals.refuses`) is one: stage
   "model", reason "not_in_sources". A strict answer of which nothing was verified is withheld: stage "verifier",
   reason "not_verified". Any other answer of which nothing was verified is shown, followed by quotes where
   `FOOTNOTE_UNCONFIRMED` asks for them (`is_unconfirmed`, docs/adr/0067).

`abstention_threshold` is the question's, else `FOOTNOTE_ABSTENTION_THRESHOLD` (`threshold_for`). The texts are in
`app.answering.refusals`.

Example:
    >>> hits, report = with_evidence("How did revenue develop?", (), minimum=0.3)
    >>> hits, report.score
    ((), 0.0)
"""

from dataclasses import dataclass, replace

from app.answering.answer import AbstentionReport, Stage
from app.answering.footnote_writer import FootnoteWriter
from app.answering.formats import ANSWER_SCHEMA
from app.answering.languages.recognition import is_english
from app.answering.languages.refusals import no_evidence, refusal, refuses, unsure
from app.answering.languages.table import REFUSAL
from app.answering.question import Limits, Question
from app.answering.quoting.quotes import Selection
from generation.ports import Tokenizer
from generation.types import Abstention, Completion, FinishReason
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


# Stage 3: the first token.


def watched_refusal(question: Question, context: Context, *, tokenizer: Tokenizer, limits: Limits) -> Abstention | None:
    """The refusal whose probability the engine watches; None without sources, or where a refusal would be no JSON."""
    if not context.sources or question.json_schema is not None:
        return None
    return Abstention(tuple(tokenizer.encode(REFUSAL)), threshold_for(question, limits))


# The outcome of stages 1 to 3 where nothing was generated, and stage 4.


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


def after_generation(
    writer: FootnoteWriter,
    completion: Completion,
    *,
    context: Context,
    selection: Selection | None,
    threshold: float | None,
    failed: bool,
) -> Verdict:
    """The verdict on a generated text: an answer or a refusal.

    Args:
        writer: Has written the whole answer.
        completion: How generation ended.
        context: The sources presented; without any, a model answers from its training and cannot refuse.
        selection: The quotes in the sources, None where nothing was selected.
        threshold: The first token's, None where the model chose.
        failed: Whether generation failed; then no stage is reported.
    """
    reason: str | None = None
    stage: Stage | None = None
    if writer.withheld:
        reason, stage = "not_verified", "verifier"
    elif context.sources and refuses(writer.answer, cited=bool(writer.citations)):
        reason, stage = "not_in_sources", "model"
    report = AbstentionReport(
        None if failed else stage,
        score=_doubt(completion.abstention, selection),
        threshold=threshold if completion.abstention is not None else None,
    )
    return Verdict(reason, report)


def _doubt(refusing: float | None, selection: Selection | None) -> float | None:
    """The probability that the sources hold no answer: the greater of the model's and the selection's."""
    if refusing is None or selection is None or not selection.decides:
        return refusing
    return max(refusing, 1 - selection.score)


def is_unconfirmed(question: Question, context: Context, writer: FootnoteWriter, completion: Completion) -> bool:
    """Whether a complete answer in English prose makes claims, none of them verified, so that quotes should follow."""
    if completion.finish_reason is not FinishReason.STOP or completion.error is not None:
        return False
    if question.sampling.logprobs is not None or not context.sources:
        return False
    if not is_english(question.text):  # the sentence selection reads English
        return False
    if writer.withheld:
        return True
    refused = refuses(writer.answer, cited=bool(writer.citations))
    return writer.claims and not writer.confirmed and not refused
