"""From the values of a point to its scenario.

The values of a point are applied to the scenario's document like `--set`, shorter paths first. Reading and checking a
document takes milliseconds, so it is done once for all points that differ only in numbers of cores, jobs and layers.
Those numbers are then put into the frozen descriptions, which check themselves. All unusual values, also every number
out of its range, go through reading and checking.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass

from lstmsim.base.errors import InputError
from lstmsim.files.scenario.scenario_file import scenario_from_document
from lstmsim.files.yaml.document import Document
from lstmsim.model.scenario import Scenario
from lstmsim.studies.sweep.costs import ChipColumns
from lstmsim.studies.sweep.objectives import Objective
from lstmsim.studies.sweep.quick import Prepared
from lstmsim.studies.sweep.quick_paths import quick_path
from lstmsim.studies.sweep.spec import Sweep, Value

__all__ = ["Resolver", "Setup"]

_MOST_PREPARED = 200


@dataclass(frozen=True, eq=False)
class Setup:
    """Everything that all points share.

    sweep: axes, derived values and constraints.
    document: the scenario's.
    scenario_name: its name unless the document has one.
    overrides: changes of the scenario that come before those of the axes.
    identity: names the setup: equal setups have equal names.
    chip: the columns about the chip of each point.
    objectives: what points are judged by.
    """

    sweep: Sweep
    document: Document
    scenario_name: str
    overrides: tuple[str, ...]
    identity: str
    chip: ChipColumns
    objectives: tuple[Objective, ...]


class Resolver:
    """Makes the scenarios of points, and keeps what it has read for further points."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.prepared: dict[tuple[str, ...], Prepared | None] = {}
        places = [(path, name) for name, paths in setup.sweep.paths.items() for path in paths]
        #: (path, name of its value) in the order in which values are set.
        self.places = sorted(places, key=lambda place: place[0].count("."))
        self.quick = [each for each in self.places if quick_path(each[0])]
        self.slow = [each for each in self.places if not quick_path(each[0])]

    def scenario(self, values: Mapping[str, Value]) -> Scenario:
        """Make the scenario of a point; `InputError` if there is none."""
        prepared = self._prepare(tuple([override(path, values[name]) for path, name in self.slow]))
        if prepared is not None:
            scenario = prepared.scenario([(path, values[name]) for path, name in self.quick])
            if scenario is not None:
                return scenario
        return self.checked(values)

    def checked(self, values: Mapping[str, Value]) -> Scenario:
        """Make the scenario of a point the long way: every value goes through the checks of scenario files."""
        texts = [override(path, values[name]) for path, name in self.places]
        return self._read(texts)[0]

    def _read(self, overrides: list[str]) -> tuple[Scenario, Document]:
        setup = self.setup
        document = copy.deepcopy(setup.document)
        return scenario_from_document(document, [*setup.overrides, *overrides], setup.scenario_name), document

    def _prepare(self, overrides: tuple[str, ...]) -> Prepared | None:
        """The scenario without the quick numbers; None if it is incomplete without them."""
        if overrides not in self.prepared:
            if len(self.prepared) >= _MOST_PREPARED:
                self.prepared.clear()
            try:
                self.prepared[overrides] = Prepared(*self._read(list(overrides)))
            except InputError:
                self.prepared[overrides] = None
        return self.prepared[overrides]


def override(path: str, value: Value) -> str:
    """Write the value at a path as `--set` takes it.

    >>> override("chip", "column-npu-64k"), override("chip.cores.0.vp", None)
    ('chip="column-npu-64k"', 'chip.cores.0.vp=null')
    """
    return f"{path}={json.dumps(value, ensure_ascii=False)}"
