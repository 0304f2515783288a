"""What is asked of the best design: its rivals, what more of the device would buy, its chip as a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from math import inf

import numpy as np

from lstmsim.base.files import whole_file
from lstmsim.files.scenario.scenario_file import checked_scenario
from lstmsim.files.yaml.document import yaml_text
from lstmsim.files.yaml.source import copied
from lstmsim.studies.design.default import MORE
from lstmsim.studies.design.judge import DOUBT, Judge, scaled
from lstmsim.studies.design.measure import Measure
from lstmsim.studies.design.result import Choice, More, Rival
from lstmsim.studies.design.space import Space
from lstmsim.studies.design.walk import INFEASIBLE, LEFT, OUT, TOO_LARGE, Found, Known, Labels, Walk

#: Chips that are written as files.
_CHIPS = 3


def rivals_of(space: Space, labels: Labels, measure: Measure, best: Choice) -> tuple[Rival, ...]:
    """Give for each key the best design that differs from the best one in it alone, if there is one.

    Those that a bound had ruled out are simulated now.
    """
    beside = [
        (key, point)
        for key, point in space.neighbours(best.point)
        if labels.label[point] not in OUT and not measure.judged(point)[0]
    ]
    rivals: dict[str, tuple[float, int]] = {}
    for (key, _), each in zip(beside, measure.simulated([point for _, point in beside]), strict=True):
        if each.values is not None and each.kept:
            rivals[key] = min(rivals.get(key, (inf, 0)), (each.values[0], each.point))
    return tuple(Rival(key, space.values(point)[key], abs(value), point) for key, (value, point) in rivals.items())


def more_of(known: Known, measure: Measure, found: Found, best: Choice) -> tuple[More, ...]:
    """Say what 10 % more of each resource would buy: of that of which the best design takes most, then of those that
    keep designs out.

    The designs that did not fit are walked again; no other design can be better than the best.
    """
    own = measure.judge.fit(measure.scenario(best.point))
    if known.device is None or own is None or own.binds is None:
        return ()
    keeps = {name for why in found.labels.counts(TOO_LARGE) for name in why.removeprefix(DOUBT).split(", ")}
    asked = [own.binds, *(each for each in own.resources if each.name in keeps and each.name != own.binds.name)]
    made, values = [], found.points[best.point]
    # what was left out by `--most` is not looked at now either
    left = np.flatnonzero(found.labels.label == LEFT)
    for resource in asked:
        larger = scaled(known.device, MORE, resource.name)
        labels = found.labels.copy()
        labels.label[labels.label == TOO_LARGE] = LEFT
        labels.label[left] = INFEASIBLE
        replace(known, device=larger).mark_too_large(labels)
        other = measure.with_judge(Judge(larger, measure.judge.allow))
        again = Walk(known.bounds, labels, other, None, best=[values]).run()
        better = [point for point in again.front() if again.points[point] < values]
        chosen = other.choice(better[0], again.points[better[0]]) if better else None
        made.append(More(resource.name, resource.words, chosen, not len(left) and not again.failed))
    return tuple(made)


def chip_names(folder: str) -> list[str]:
    """Give the names of the files of the best chips."""
    return [os.path.join(folder, f"chip-{number}.yaml") for number in range(1, _CHIPS + 1)]


def chip_files(space: Space, best: Sequence[Choice], folder: str) -> tuple[str, ...]:
    """Write the chips of the best designs as files that scenarios take; give their names."""
    names: list[str] = []
    if not best:
        return ()
    different = {each.objective: each for each in reversed(best)} if len(best[0].objective) > 1 else None
    chosen = list(different.values())[::-1] if different else best
    for name, each in zip(chip_names(folder), chosen, strict=False):
        document = copied(space.setup.document)
        clock = [f"chip.frequency_mhz={each.mhz!r}"] if each.mhz is not None else []
        settings = [*space.setup.overrides, *space.settings(each.point), *clock]
        checked_scenario(document, settings, space.setup.scenario_name)
        names.append(name)
        with whole_file(name) as file:
            file.write(yaml_text(document.data["chip"]))
    return tuple(names)
