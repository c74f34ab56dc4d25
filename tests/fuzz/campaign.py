"""A campaign: the API's own description, turned into requests and into what every answer must be.

Schemathesis (Hatfield-Dodds & Dygalo 2022, arXiv:2112.10328) derives both from `/openapi.json`: boundary values of
every parameter, random bodies that fit and that do not, and chains that go on with the ids of answers.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import httpx
import schemathesis.engine
import schemathesis.openapi
from schemathesis import Case, Config, HookContext
from schemathesis.engine import events
from schemathesis.engine.recorder import ScenarioRecorder
from schemathesis.hooks import GLOBAL_HOOK_DISPATCHER

from tests.fuzz.checks import CHECKS
from tests.fuzz.links import with_links

PHASES = ("examples", "coverage", "fuzzing", "stateful")


@dataclass(frozen=True, slots=True)
class Broken:
    """A promise that an answer broke; `curl` sends the request again, or names the file that has the case."""

    operation: str
    check: str
    said: str
    curl: str


@dataclass(slots=True)
class Campaign:
    """What was sent and what came of it."""

    by_operation: Counter[str] = field(default_factory=Counter)
    by_status: Counter[tuple[str, int]] = field(default_factory=Counter)
    by_phase: Counter[str] = field(default_factory=Counter)
    checked: Counter[str] = field(default_factory=Counter)
    cases: Counter[str] = field(default_factory=Counter)
    """Cases of the grammars by target; some send no request."""
    broken: dict[tuple[str, str, str], Broken] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    @property
    def requests(self) -> int:
        return self.by_operation.total()

    def add(self, other: "Campaign") -> None:
        """Count `other` too."""
        self.by_operation.update(other.by_operation)
        self.by_status.update(other.by_status)
        self.by_phase.update(other.by_phase)
        self.checked.update(other.checked)
        self.cases.update(other.cases)
        self.broken = {**other.broken, **self.broken}
        self.errors.extend(other.errors)

    def record(self, phase: str, recorder: ScenarioRecorder) -> None:
        """Count a scenario's requests and keep what was broken, once for each promise, operation and wording."""
        for case_id, interaction in recorder.interactions.items():
            operation = recorder.cases[case_id].value.operation.label
            self.by_operation[operation] += 1
            self.by_phase[phase] += 1
            status = interaction.response.status_code if interaction.response is not None else 0
            self.by_status[operation, status] += 1
        for case_id, checks in recorder.checks.items():
            for check in checks:
                self.checked[check.name] += 1
                if check.failure_info is None:
                    continue
                operation = recorder.cases[case_id].value.operation.label
                failure = check.failure_info.failure
                first = f"{failure.title}: {failure.message}"
                key = (operation, check.name, failure.title)
                self.broken.setdefault(key, Broken(operation, check.name, first, check.failure_info.code_sample))


def run_campaign(
    url: str,
    *,
    secret: str,
    seed: int,
    examples: int,
    phases: tuple[str, ...] = PHASES,
    only: str | None = None,
    spared: frozenset[str] = frozenset(),
    steps: int = 8,
    workers: int = 1,
) -> Campaign:
    """Send the requests of one seed to the application at `url`.

    Args:
        url: Where it listens.
        secret: The API key that is sent.
        seed: Decides the random requests; boundary values are always the same.
        examples: Random requests an operation, and chains of requests.
        phases: Kinds of requests to send.
        only: Pattern of the paths that are called; all by default.
        spared: Ids that no request changes: without its own key a campaign says nothing more.
        steps: Requests a chain.
        workers: Requests at once, in phases without chains.
    """
    campaign = Campaign()
    document = httpx.get(f"{url}/openapi.json", trust_env=False, timeout=60).raise_for_status().json()
    schema: schemathesis.BaseSchema = schemathesis.openapi.from_dict(
        with_links(document), config=_config(url, secret, seed, examples, steps, workers)
    )
    schema.config.phases.update(phases=list(phases))
    schema.config.checks.update(included_check_names=CHECKS)
    if only is not None:
        schema = schema.include(path_regex=only)

    def spare(context: HookContext, case: Case[Any], kwargs: dict[str, Any]) -> None:
        if case.method != "GET":
            found = {name: value for name, value in case.path_parameters.items() if value in spared}
            case.path_parameters.update(dict.fromkeys(found, "spared"))

    GLOBAL_HOOK_DISPATCHER.register_hook_with_name(spare, "before_call")
    try:
        _run(schema, campaign)
    finally:
        GLOBAL_HOOK_DISPATCHER.unregister(spare)
    return campaign


def _run(schema: schemathesis.BaseSchema, campaign: Campaign) -> None:
    for event in schemathesis.engine.from_schema(schema).execute():
        match event:
            case events.ScenarioFinished():
                campaign.record(event.phase.value, event.recorder)
            case events.NonFatalError():
                campaign.errors.append(f"{event.label}: {event.info.format()}")
            case events.FatalError():
                raise event.exception


def _config(url: str, secret: str, seed: int, examples: int, steps: int, workers: int) -> Config:
    return Config.from_dict(
        {
            "seed": seed,
            "base-url": url,
            "headers": {"Authorization": f"Bearer {secret}"},
            "workers": workers,
            "continue-on-failure": True,
            "request-timeout": 60,
            "tls-verify": False,
            "generation": {"max-examples": examples, "no-shrink": True, "database": "none"},
            "phases": {"stateful": {"max-steps": steps}},
            "output": {"sanitization": {"enabled": False}},
        }
    )
