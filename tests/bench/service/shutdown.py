"""SIGTERM again and again while streams are open: `python -m tests.bench.service.shutdown --times 20`.

Counts streams that ended without a terminal event, exit statuses other than 0, and rows left open.
"""

import argparse
import signal
import tempfile
import time
from pathlib import Path

from tests.faults.forked import ForkedServer
from tests.faults.metered import metered_slowly
from tests.faults.open_streams import OpenStream, rows_of

_ASK = {"question": "How many ships?", "on_no_evidence": "answer", "stream": True, "max_output_tokens": 2000}
_STREAMS = 12
_DRAIN_SECONDS = 0.5


def main() -> None:
    """Print what was counted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    times = parser.parse_args().times
    cut = open_rows = failed = streams = 0
    seconds: list[float] = []
    for number in range(times):
        with tempfile.TemporaryDirectory() as folder:
            server = ForkedServer(Path(folder) / "data", metered_slowly, drain_s=_DRAIN_SECONDS).start()
            running = [OpenStream(server, "/v1/ask", _ASK) for _ in range(_STREAMS)]
            running[0].wait_for_text()
            time.sleep(number / times)  # the others are queued, in their prompt, or streaming
            told = time.monotonic()
            server.signal(signal.SIGTERM)
            failed += server.ended(seconds=_DRAIN_SECONDS + 10) != 0
            seconds.append(time.monotonic() - told)
            for stream in running:
                streams += 1
                cut += stream.outcome() not in {"done", "error", "refused"}
            open_rows += sum(row.status == "reserved" for row in rows_of(server.data_dir))
            server.close()
    print(
        f"{times} times SIGTERM, {streams} streams: {cut} without a terminal event, {failed} exits other than 0 in time"
    )
    print(f"{open_rows} rows left open; longest from signal to exit {max(seconds):.2f} s (drain {_DRAIN_SECONDS} s)")


if __name__ == "__main__":
    main()
