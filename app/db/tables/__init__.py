"""All tables of Footnote on one metadata object, which migrations compare with the database."""

import app.db.tables.access
import app.db.tables.answer_tables
import app.db.tables.answers
import app.db.tables.budgets
import app.db.tables.documents
import app.db.tables.ledger
import app.db.tables.prices
import app.db.tables.rollups
import app.db.tables.watches  # noqa: F401 - each puts its tables on the metadata
from app.db.tables.documents import metadata

__all__ = ["metadata"]
