"""How large admission is made, by the settings and the machine."""

import os
from collections.abc import Callable

from app.admission.admission import Admission
from app.admission.failed_logins import FailedLogins
from app.admission.line import Line
from app.admission.quotas import OverriddenQuotas
from app.admission.rates import Rates
from app.admission.types import Quota
from app.settings import Settings

_LEAST_TURNS = 4


def default_quotas(settings: Settings) -> tuple[Quota, Quota]:
    """What a key and what a tenant may take for whom nothing else was set."""
    key = Quota(
        requests_per_minute=settings.requests_per_minute,
        tokens_per_minute=settings.tokens_per_minute,
        concurrent_requests=settings.concurrent_requests,
    )
    tenant = Quota(
        requests_per_minute=settings.tenant_requests_per_minute,
        tokens_per_minute=settings.tenant_tokens_per_minute,
        concurrent_requests=settings.tenant_concurrent_requests,
    )
    return key, tenant


def sized_admission(
    settings: Settings, *, quotas: OverriddenQuotas, rates: Rates, waiting_tokens: Callable[[], int]
) -> Admission:
    """Admission as the settings want it.

    Seats: as many as generate, as many again so that the next ones stand ready, and those being prepared.
    """
    turns = _turns(settings)
    return Admission(
        quotas=quotas,
        rates=rates,
        failed_logins=FailedLogins(settings.failed_logins_per_minute),
        seats=Line(2 * settings.max_running + turns, waiting=settings.max_waiting),
        turns=Line(turns, waiting=settings.max_waiting),
        waiting_tokens=waiting_tokens,
        most_waiting_tokens=settings.max_waiting_tokens,
    )


def _turns(settings: Settings) -> int:
    """Threads that prepare at once: no more than the executor has, or they would wait there, in no order."""
    cores = len(os.sched_getaffinity(0))
    wanted = max(_LEAST_TURNS, cores)
    if settings.overflow == "summarise" or settings.followup == "model":
        wanted += settings.max_running  # their threads wait for the generator
    return min(wanted, 32, (os.cpu_count() or 1) + 4)
