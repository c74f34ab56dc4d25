"""What a generation tells of itself at its end, as stations: waiting, prefill, first token, decode.

Attribute names are OpenTelemetry's for generative AI (semantic conventions, gen-ai spans); no text is among them.
"""

import time

from app.instrumentation import Work
from generation.types import Completion


def record_generation(work: Work, completion: Completion, *, ended_ns: int | None = None) -> None:
    """Record the stations of a completion that ended at `ended_ns` (Unix nanoseconds; None is now)."""
    timings, end = completion.timings, ended_ns or time.time_ns()
    began = end - round(timings.total_ms * 1e6)
    attributes: dict[str, str | int] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.usage.input_tokens": completion.prompt_tokens,
        "gen_ai.usage.output_tokens": completion.generated_tokens,
        "footnote.cached_tokens": completion.cached_tokens,
        "footnote.delivered_tokens": completion.delivered_tokens,
        "footnote.finish_reason": completion.finish_reason.value,
    }
    queue_s = timings.queue_ms / 1000
    work.record("engine", seconds=timings.total_ms / 1000, ended_ns=end, attributes=attributes)
    work.record("engine_queue", seconds=queue_s, ended_ns=began + round(queue_s * 1e9))
    if timings.first_token_ms is None:
        return
    first_s = timings.first_token_ms / 1000
    first_ns = began + round(first_s * 1e9)
    work.record("prefill", seconds=max(0.0, first_s - queue_s), ended_ns=first_ns)
    work.record("first_token", seconds=first_s, ended_ns=first_ns)
    work.record("decode", seconds=max(0.0, timings.total_ms / 1000 - first_s), ended_ns=end)
