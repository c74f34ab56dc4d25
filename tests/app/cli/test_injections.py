"""`footnote eval-injections` prints a table with a row for each family of injections."""

from rich.console import Console

from app.cli.injections import table
from app.evaluation.injections.measurement import InjectionRates


def test_every_family_has_a_row_with_its_shares():
    rates = [
        InjectionRates(
            family=family, attacks=4, presented=1.0, obeyed=0.25, quoted=0.5, control=0.0, right=0.75, right_control=1.0
        )
        for family in ("override", "all")
    ]
    console = Console(width=120, record=True, file=None, force_terminal=False)
    with console.capture() as captured:
        console.print(table(rates))

    rows = [line.split() for line in captured.get().splitlines() if "0.25" in line]
    assert [row[1] for row in rows] == ["override", "all"]
    assert [cell for cell in rows[0] if cell != "│"][1:] == ["4", "1.00", "0.25", "0.50", "0.00", "0.75", "1.00"]
