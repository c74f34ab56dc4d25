"""Abstention where a language model answers: before it is called, its first token, and the finished answer.

`app.answering.abstention` describes all four.
"""

from app.answering.answers.answer import AbstentionReport, Stage
from app.answering.answers.parts import Reason
from app.answering.formats.answer_formats import ANSWER_SCHEMA
from app.answering.generating.footnote_writer import FootnoteWriter
from app.answering.generating.wording import Wording
from app.answering.languages.recognition import is_english
from app.answering.languages.refusals import refuses
from app.answering.question import AnswerDefaults, Question
from app.answering.states.reading import Selection
from generation.ports import Tokenizer
from generation.types import Abstention, Completion, FinishReason
from retrieval.types import Context


def refused_before_generation(
    question: Question, context: Context, selection: Selection | None, *, rereads: bool = False
) -> bool:
    """Whether a question is refused without sources, or because nothing in them is likely to answer it.

    A question that allows answers without evidence is not refused; nor, in stage 2, one that asks for JSON by
    a schema of its own, which a refusal would not satisfy, nor any by a model that `rereads`: it reads better than
    what selects quotes.
    """
    if question.on_no_evidence == "answer":
        return False
    if not context.sources:
        return True
    refused = not rereads and selection is not None and selection.decides and selection.outcome == "refused"
    return refused and question.json_schema in {None, ANSWER_SCHEMA}


def watched_refusal(
    question: Question, context: Context, *, tokenizer: Tokenizer, limits: AnswerDefaults, wording: Wording
) -> Abstention | None:
    """The refusal whose probability the engine watches; None without sources, or where a refusal would be no JSON."""
    if not context.sources or question.json_schema is not None:
        return None
    return Abstention(tuple(tokenizer.encode(wording.refusal_for(question.text))), limits.refused_from(question))


def after_generation(
    writer: FootnoteWriter,
    completion: Completion,
    *,
    context: Context,
    selection: Selection | None,
    threshold: float | None,
    failed: bool,
) -> tuple[Reason | None, AbstentionReport]:
    """The reason of a refusal that a model wrote, None for an answer; and the stage that refused.

    Args:
        writer: Has written the whole answer.
        completion: How generation ended.
        context: The sources presented; without any, a model answers from its training and cannot refuse.
        selection: The quotes in the sources, None where nothing was selected.
        threshold: The first token's, None where the model chose.
        failed: Whether generation failed; then no stage is reported.
    """
    reason: Reason | None = None
    stage: Stage | None = None
    if writer.withheld:
        reason, stage = Reason.NOT_VERIFIED, "verifier"
    elif context.sources and refuses(writer.answer, cited=bool(writer.citations)):
        reason, stage = Reason.NOT_IN_SOURCES, "model"
    report = AbstentionReport(
        None if failed else stage,
        score=_doubt(completion.abstention, selection),
        threshold=threshold if completion.abstention is not None else None,
    )
    return reason, report


def _doubt(refusing: float | None, selection: Selection | None) -> float | None:
    """The probability that the sources hold no answer: the greater of the model's and the selection's."""
    if refusing is None or selection is None or not selection.decides:
        return refusing
    return max(refusing, 1 - selection.score)


def is_unconfirmed(question: Question, context: Context, writer: FootnoteWriter, completion: Completion) -> bool:
    """Whether quotes should follow an answer in English prose.

    They follow a complete one that makes claims, none of them verified, and one that went round in a circle.
    """
    circle = completion.finish_reason is FinishReason.REPETITION
    if not (circle or completion.finish_reason is FinishReason.STOP) or completion.error is not None:
        return False
    if question.sampling.logprobs is not None or not context.sources:
        return False
    if not is_english(question.text):  # the sentence selection reads English
        return False
    if writer.withheld or circle:
        return True
    refused = refuses(writer.answer, cited=bool(writer.citations))
    return writer.claims and not writer.confirmed and not refused
