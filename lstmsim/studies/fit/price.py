"""What a change of a chip costs: on a device, where one is known, else in multipliers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from lstmsim.analysis.explanations.what_if import Price
from lstmsim.base.errors import InputError
from lstmsim.machines.change import Change
from lstmsim.machines.hardware import Stored
from lstmsim.machines.registry import target_of
from lstmsim.model.scenario import Scenario
from lstmsim.report.figures_text import percent
from lstmsim.studies.fit.device import Device, device, device_of
from lstmsim.studies.fit.fit import Fit, fit
from lstmsim.studies.shared.stamp import KeyValue, key_values

#: A change that takes less of every resource of a device is not noticed there.
_NOTICED = 0.005


@dataclass(frozen=True)
class Pricing:
    """Prices of changes of one scenario; an object is called with a change.

    scenario: what is changed.
    on: the device; None: none is known.
    """

    scenario: Scenario
    on: Device | None = None

    def __call__(self, change: Change) -> Price:
        """The price of a change."""
        changed = self._changed(change.chip)
        if change.no_price:
            return Price(f"none can be named: {change.no_price}")
        if all(isinstance(each.values[0], str) for each in changed) and self._cores(change.chip) == self._cores():
            return Price("no hardware", 0.0, None if self._now is None else self._now.fits)
        quicker = [each.path.removeprefix("cores.") for each in changed if each.is_time]
        if quicker:
            few = ", ".join(quicker[:2]) + (f" and {len(quicker) - 2} more" if len(quicker) > 2 else "")
            return Price(f"not known: no source says what less {few} costs")
        price = self._in_multipliers(change.chip) if self.on is None else self._on_device(change.chip, self.on)
        return replace(price, multipliers=self._multipliers(change.chip) - self._multipliers(self.scenario.chip))

    @property
    def misfit(self) -> str:
        """That the chip does not fit the device, in a sentence; empty if it fits or nobody can tell."""
        if self.on is None or self._now is None or self._now.fits is not False:
            return ""
        return f"{self.scenario.chip.name} on {self.on.name} {self._now.verdict}; no such chip can be built there."

    def _changed(self, chip: Any) -> list[KeyValue]:
        before = {each.path: set(each.values) for each in key_values(self.scenario.chip)}
        return [each for each in key_values(chip) if set(each.values) != before.get(each.path)]

    def _cores(self, chip: Any = None) -> int:
        return len((chip or self.scenario.chip).cores)

    def _multipliers(self, chip: Any) -> int:
        """Multipliers of the arrays and of what follows them, as far as the machine counts its parts."""
        hardware = target_of(chip.kind).hardware()
        if hardware is None:
            return sum(each.peak for each in chip.core_figures)
        cells = tuple(dict.fromkeys(layer.cell for job in self.scenario.jobs for layer in job.model.layers))
        count = 0
        for core in chip.cores:
            tail = hardware.tail(core, cells, self.scenario.precision)
            count += hardware.multipliers(core) + tail.lanes * tail.each.total() + tail.once.total()
        return count

    def _in_multipliers(self, chip: Any) -> Price:
        now, then = self._multipliers(self.scenario.chip), self._multipliers(chip)
        if then <= now:
            text = "no multiplier more" if then == now else f"{now - then:,} multipliers less"
            return Price(f"{text}, what else it takes is not counted: no device is given", then / now - 1)
        return Price(
            f"{then - now:,} multipliers more, +{percent(then - now, now)}; no device is given", then / now - 1
        )

    @cached_property
    def _now(self) -> Fit | None:
        return self._fit(self.scenario.chip)

    def _fit(self, chip: Any) -> Fit | None:
        if self.on is None:
            return None
        models = tuple(dict.fromkeys(job.model for job in self.scenario.jobs))
        try:
            return fit(chip, models, self.scenario.precision, self.on, Stored.of(self.scenario.jobs))
        except InputError:
            return None

    def _on_device(self, chip: Any, on: Device) -> Price:
        now, then = self._now, self._fit(chip)
        if now is None or then is None:
            return Price(f"not known on {on.name}: the chip has no parts that could be counted")
        pairs = [(one, two) for one, two in zip(now.resources, then.resources, strict=True) if one.share is not None]
        rises = [(two.share - (one.share or 0.0), one, two) for one, two in pairs if two.share is not None]
        if not rises:
            return Price(f"not known on {on.name}: {then.verdict}", fits=then.fits)
        rise, one, two = max(rises, key=lambda each: each[0])
        if rise < _NOTICED:
            return Price(f"less than {100 * _NOTICED:g} % of any resource of {on.name}", max(rise, 0.0), then.fits)
        about = " (an estimate)" if two.band else ""
        fits = {True: "fits", False: "does not fit", None: "cannot tell whether it fits"}[then.fits]
        return Price(f"{two.name} of {on.name} {one.percent} -> {two.percent}{about}; {fits}", rise, then.fits)


def pricing(scenario: Scenario, name: str | None = None) -> Pricing:
    """Give the prices of changes of a scenario.

    name: the device; None: that on which the chip was built, where it is known.

    >>> from lstmsim.files.scenario.scenario_file import load_chip
    >>> from lstmsim.studies.shared.loading import load_scenario
    >>> asked = pricing(load_scenario({"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 3}]}))
    >>> asked(Change("the same", "", load_chip("column-npu-16k"), ())).text
    'no hardware'
    """
    home = name or device_of(scenario.chip.name)
    return Pricing(scenario, None if home is None else device(home))
