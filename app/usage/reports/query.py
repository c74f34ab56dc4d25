"""What a report is asked for."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.usage.rollups.sums import Only


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportQuery:
    """One page of one report. Times are Unix seconds, `[start, end)`, `end` None until now.

    `tz` None is the reporting zone. `group_by` and the filters (None: all) are in the words of the API; `statuses` may
    name `adjustment`. `limit` is buckets a page, `page` the `next_page` of the page before.
    """

    tenant_id: str
    start: int
    end: int | None = None
    bucket_width: str = "1d"
    tz: str | None = None
    group_by: Sequence[str] = ()
    project_ids: Sequence[str] | None = None
    user_ids: Sequence[str] | None = None
    api_key_ids: Sequence[str] | None = None
    models: Sequence[str] | None = None
    statuses: Sequence[str] | None = None
    limit: int | None = None
    page: str | None = None

    def only(self, operations: Sequence[str] | None = None) -> Only:
        """The filters by dimension, and the operations the report is about (None: all)."""
        chosen = {
            "project_id": self.project_ids,
            "user_id": self.user_ids,
            "api_key_id": self.api_key_ids,
            "model": self.models,
            "status": self.statuses,
            "operation": operations,
        }
        return {name: values for name, values in chosen.items() if values is not None}
