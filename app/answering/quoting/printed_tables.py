"""Lists the lines of a table above one of its rows, also where labels and names of columns are lines between its rows.

On a printed page, the names of columns take several lines, some of which are read as paragraphs of their own, and
labels stand between the rows. `ingestion.tables` finds such tables in a document; here a passage alone is at hand.
"""

from collections.abc import Sequence

from app.answering.quoting.columns import is_line_of_table
from app.answering.quoting.headed_rows import says_unit, values_of

_LINE_CHARS = 80  # a longer line is neither a printed column's name nor a label between rows
_MOST_LABELS = 2  # between two rows of data
_MOST_NAMES = 8  # lines between the names of columns and the first row of data


def lines_above(before: str, line: str, table_header: str) -> list[str]:
    """The lines of a table above a row, top first; lines of single words that may name columns are one line.

    Args:
        before: The passage's text up to the row.
        line: The row.
        table_header: What the passage lacks of a table that began before it; used where the row is of that table.
    """
    values = values_of(line)
    found: list[str] = []  # the last line first
    between: list[str] = []
    named = gap = False  # whether names of columns were found, and whether anything is between the lines of the table
    whole, blank = True, True
    for above in reversed(before.split("\n")[:-1]):
        if not values and not is_line_of_table(above):  # of words nobody can tell how far their table goes
            whole = False
            break
        if not above.strip():
            gap = blank = True
            continue
        if is_line_of_table(above):
            data = values_of(above)
            if data and gap and (named or len(between) > _MOST_LABELS or data != values):
                whole = False
                break
            found += [*between, above]
            named = named or not data
            between, gap = [], False
        elif not _is_short(above) or len(between) >= _MOST_NAMES:
            whole = False
            break
        elif between and not blank:
            between[-1] = f"{above.strip()} {between[-1]}"
        else:
            between.append(above.strip())
            gap = True
        blank = False
    found += [one for one in between if not named or says_unit(one)]
    lines = _joined(found[::-1])
    return [*table_header.split("\n"), *lines] if whole and table_header else lines


def _joined(lines: Sequence[str]) -> list[str]:
    """The lines, those of single words above the first row of data in one where they follow each other.

    Among several units each is of the name above it.
    """
    joined: list[str] = []
    stacked = begun = False
    several = sum(map(_is_unit_alone, lines)) > 1
    for line in lines:
        table = is_line_of_table(line)
        begun = begun or (table and values_of(line) > 0)
        single = not (table or begun or line.endswith(":")) and (not says_unit(line) or (several and stacked))
        if not (single and stacked):
            joined.append(f"| {line}" if single else line)  # none of them is above the rows' labels
        elif _is_unit_alone(line):
            joined[-1] = f"{joined[-1]} {line}"
        else:
            joined[-1] = f"{joined[-1]} | {line}"
        stacked = single
    return joined


def _is_unit_alone(line: str) -> bool:
    return line.startswith("(") and says_unit(line) and not is_line_of_table(line)


def _is_short(line: str) -> bool:
    """Whether a line may name a column or label rows; what it says of the whole table, in brackets, may be longer."""
    return len(line) <= _LINE_CHARS or (len(line) <= 2 * _LINE_CHARS and line.startswith("(") and says_unit(line))
