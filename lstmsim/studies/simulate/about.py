"""What a result says of its input, so that it can be made again: version, scenario, models, seeds."""

from __future__ import annotations

from typing import Any

from lstmsim import __version__
from lstmsim.model.scenario import Scenario

__all__ = ["about"]


def about(scenario: Scenario, *, jobs: bool = True) -> dict[str, Any]:
    """Describe the input of a result as plain data.

    scenario: what was simulated or served.
    jobs: whether its jobs are the user's, so that the description is a scenario file that gives the same again; else
        they are templates of requests, and only chip, models and precision are described.

    >>> from lstmsim.files.scenario.scenario_file import load_scenario
    >>> one = load_scenario({"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 5}]})
    >>> list(about(one)), about(one, jobs=False)["scenario"]["models"][0]["layers"][0]["hidden"]
    (['version', 'seeds', 'scenario'], 512)
    """
    from lstmsim.files.scenario.resolved import resolved_data

    data = resolved_data(scenario)
    if not jobs:
        models = {entry["model"]["name"]: entry["model"] for entry in data["jobs"]}
        data = {key: value for key, value in data.items() if key != "jobs"} | {"models": list(models.values())}
    return {"version": __version__, "seeds": dict(scenario.seeds), "scenario": data}
