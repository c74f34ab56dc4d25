"""The grammars as a part of a campaign: their requests are counted with the others, what failed is kept as a seed."""

from pathlib import Path

from tests.fuzz.campaign import Broken, Campaign
from tests.fuzz.grammars.every import CASES, every_target
from tests.fuzz.seeds_kept import FOLDER, keep_seed, kept_seeds
from tests.fuzz.target import Target, hunt, tried_once


def run_grammars(url: str, *, seed: int, times: int, folder: Path = FOLDER) -> Campaign:
    """Try the kept seeds and `times` as many cases as a short run has, against the application at `url`."""
    campaign = Campaign()
    with every_target(url) as targets:
        for name, target in targets.items():
            hunt_one(target, campaign, seed=seed, examples=CASES[name] * times, folder=folder)
    return campaign


def hunt_one(target: Target, campaign: Campaign, *, seed: int, examples: int, folder: Path) -> None:
    """Try the seeds and `examples` random cases of one target, count them, and keep the case that fails."""
    faults = []
    for case in kept_seeds(target.name, folder=folder).values():
        campaign.cases[target.name] += 1
        faults.append(tried_once(target, case))
    hunted = hunt(target, seed=seed, examples=examples)
    campaign.cases[target.name] += hunted.cases
    faults.append(hunted.fault)
    for fault in faults:
        if fault is not None:
            path = keep_seed(fault, folder=folder)
            again = f"kept as {path}; replayed by pytest tests/fuzz/test_grammars.py -k {target.name}"
            campaign.broken[target.name, "grammar", fault.said] = Broken(target.name, "grammar", fault.said, again)
    for (operation, status), count in target.answers.items():
        campaign.by_operation[operation] += count
        campaign.by_status[operation, status] += count
        campaign.by_phase["grammars"] += count
