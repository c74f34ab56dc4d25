"""Every table of Footnote on one metadata: for migrations, which compare all of it."""

import app.db.tables_access
import app.db.tables_audit
import app.db.tables_budgets
import app.db.tables_feedback
import app.db.tables_ledger
import app.db.tables_limits
import app.db.tables_openai
import app.db.tables_prices
import app.db.tables_rollups  # noqa: F401 - each puts its tables on the metadata
from app.db.tables import metadata

__all__ = ["metadata"]
