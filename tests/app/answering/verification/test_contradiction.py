"""app.answering.verification.contradiction recognises statements that contradict each other."""

import pytest

from app.answering.languages.statement import parse_statement
from app.answering.verification.contradiction import contradicts


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("Revenue fell 12 percent in 2025.", "Revenue rose 12 percent in 2025."),
        ("The drug lowers blood pressure.", "The drug does not lower blood pressure."),
        ("The drug doesn't lower blood pressure.", "The drug lowers blood pressure."),
        ("No employees left the plant.", "Employees left the plant."),
        ("The plant opened after the war.", "The plant opened before the war."),
        ("The team won the final.", "The team lost the final."),
        ("Oslo has more inhabitants than Bergen.", "Oslo has fewer inhabitants than Bergen."),
        ("Aspirin inhibits growth of the cells.", "Aspirin promotes growth of the cells."),
    ],
)
def test_a_negation_or_an_opposite_on_one_side_contradicts(claim, evidence):
    assert contradicts(parse_statement(claim), parse_statement(evidence))


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("Revenue rose 12 percent.", "Revenue increased by 12 percent in 2025."),
        ("Revenue did not rise in 2025.", "Revenue fell in 2025."),
        ("The drug does not lower blood pressure.", "The drug did not lower blood pressure in adults."),
        ("The plant makes turbines.", "The plant makes not only turbines."),
        ("Revenue rose.", "Revenue rose while costs fell."),
        ("The hall is large.", "Nobody came. The hall is large."),
    ],
)
def test_agreement_in_other_words_does_not(claim, evidence):
    assert not contradicts(parse_statement(claim), parse_statement(evidence))
