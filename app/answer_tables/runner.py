"""Asks the cells of tables that wait, one at a time, after what requests ask."""

import time
from collections.abc import Callable

from app.answer_tables.filling import Filling
from app.answering.answerer import Answerer
from app.db.table_cells import ClaimedCell, TableCells
from app.errors import StoreUnavailable
from app.telemetry.logs import logger
from app.unattended.asking import yield_to_requests

_LOOK_S = 1.0  # between two looks whether the cell that is asked is still wanted


class TableRunner:
    """Asks what is due. One instance serves one thread of one process; others may run beside it.

    Example:
        >>> runner.work()
        24
    """

    def __init__(
        self,
        *,
        cells: TableCells,
        filling: Filling,
        answerer: Callable[[], Answerer | None],
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`answerer` is the one in use, None while the models are loading; `sleep` waits for answers under way."""
        self._cells = cells
        self._filling = filling
        self._answerer = answerer
        self._sleep = sleep
        self._monotonic = monotonic

    def work(self, *, stopping: Callable[[], bool] = lambda: False) -> int:
        """Ask each cell that is due; returns how many.

        Args:
            stopping: Checked before each cell and while one is asked; once true, that one waits again.

        Raises:
            StoreUnavailable, StorageFull: What is due stays due.
        """
        done = 0
        while (answerer := self._answerer()) is not None and not stopping():
            claimed = self._cells.claim()
            if claimed is None:
                break
            yield_to_requests(answerer, stopping=stopping, sleep=self._sleep)
            finding = self._filling.fill(claimed, answerer, stopping=self._ending(claimed, stopping))
            kept = self._cells.finish(claimed, finding)
            logger().info(
                "table.asked",
                table=claimed.table_id,
                row=claimed.row,
                column=claimed.column_no,
                state=finding.state,
                stopped=finding.stops is not None,
                kept=kept,
            )
            done += 1
        return done

    def _ending(self, claimed: ClaimedCell, stopping: Callable[[], bool]) -> Callable[[], bool]:
        """Whether a cell is to be asked no more: the process stops, or its table was deleted or taken."""
        looked = self._monotonic()

        def ending() -> bool:
            nonlocal looked
            if stopping():
                return True
            if self._monotonic() < looked + _LOOK_S:
                return False
            looked = self._monotonic()
            try:
                return not self._cells.holds(claimed)
            except StoreUnavailable:
                return False  # not known now

        return ending
