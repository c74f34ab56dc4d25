"""How well a language model did on the cases, and the class that follows (docs/adr/0089)."""

from collections.abc import Iterable
from dataclasses import dataclass

from app.answering.generating.model_class import ModelClass
from app.probing.cases import Needs, ProbeCase

# Set between two models that were compared with quotes on people's questions: one of 0.5 billion parameters, worse than
# quotes, reads .20 of the facts and refuses .39; one of 1.5 billion, better than quotes, reads .70 and refuses .14.
_WRITER_READS = 0.5
_WRITER_REFUSES = 0.25
_STRONG_READS = 0.95
_STRONG_JOINS = 0.8
_STRONG_FORMS = 0.75


@dataclass(frozen=True, slots=True)
class Share:
    """`count` of `of` cases."""

    count: int
    of: int

    @property
    def value(self) -> float:
        """Between 0 and 1; 0 of no cases."""
        return self.count / self.of if self.of else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReading:
    """What a model did with the cases.

    Attributes:
        reads: Facts that it answered right.
        joins: Questions that need two sources, answered right.
        forms: Lists and tables that are whole and have their form.
        refuses: Questions with an answer, one fact or two, that it said the sources do not answer.
        declines: Questions without an answer that it said so of.
    """

    reads: Share
    joins: Share
    forms: Share
    refuses: Share
    declines: Share

    @classmethod
    def of(cls, replies: Iterable[tuple[ProbeCase, str]]) -> "ModelReading":
        """What a model did that gave these replies."""
        given = list(replies)

        def answered(kind: Needs) -> Share:
            asked = [case.answered_by(reply) for case, reply in given if case.kind is kind]
            return Share(sum(asked), len(asked))

        def declined(*kinds: Needs) -> Share:
            asked = [case.declined_by(reply) for case, reply in given if case.kind in kinds]
            return Share(sum(asked), len(asked))

        return cls(
            reads=answered(Needs.FACT),
            joins=answered(Needs.JOINS),
            forms=answered(Needs.FORM),
            refuses=declined(Needs.FACT, Needs.JOINS),
            declines=declined(Needs.NONE),
        )

    @property
    def model_class(self) -> ModelClass:
        """The class of a model that reads so."""
        if self.reads.value < _WRITER_READS or self.refuses.value > _WRITER_REFUSES:
            return ModelClass.QUOTES
        strong = self.reads.value >= _STRONG_READS and self.joins.value >= _STRONG_JOINS
        return ModelClass.STRONG if strong and self.forms.value >= _STRONG_FORMS else ModelClass.WRITER
