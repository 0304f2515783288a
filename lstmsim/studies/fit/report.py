"""A fit and an energy in the forms that people and scripts read: tables for the terminal, JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any, Protocol

from lstmsim.report.results import Forms
from lstmsim.report.tables import table
from lstmsim.studies.fit.energy import Energy
from lstmsim.studies.fit.fit import Fit, Resource
from lstmsim.studies.fit.needs import TailNeed

__all__ = ["ENERGY_SCHEMA", "FIT_SCHEMA", "FORMS", "Published", "energy_json", "energy_text", "fit_json", "fit_text"]

FIT_SCHEMA = "lstmsim/fit/1"
ENERGY_SCHEMA = "lstmsim/energy/1"

_WIDTH = 100


class Published(Protocol):
    """A published design on the same device; a row of `lstmsim.files.published.hardware()` is one."""

    @property
    def design(self) -> str: ...
    @property
    def precision(self) -> str: ...
    @property
    def macs(self) -> int | None: ...
    @property
    def frequency_mhz(self) -> float | None: ...
    @property
    def alm(self) -> str: ...
    @property
    def dsp(self) -> str: ...
    @property
    def m20k(self) -> str: ...
    @property
    def power(self) -> str: ...
    @property
    def source(self) -> str: ...


def fit_text(fit: Fit, published: Sequence[Published] = ()) -> str:
    """Write at most 100 columns: what is needed, what there is, what binds; then published designs on the device.

    >>> from lstmsim.studies.fit.device import device
    >>> from lstmsim.studies.fit.fit import fit
    >>> from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
    >>> from lstmsim.model.cells import cell
    >>> from lstmsim.model.model import Layer, Model
    >>> from lstmsim.model.model import Precision
    >>> chip = ColumnNpu("c", 250, (ColumnCore(npe=1024, ep=16, vp=64),))
    >>> made = fit(chip, [Model("m", (Layer(cell("lstm"), 64, 64),))], Precision(), device("stratix-10-gx-2800"))
    >>> print(fit_text(made).splitlines()[0])
    FIT of c on stratix-10-gx-2800: fits: DSP 14 % used
    """
    device = fit.device
    lines = textwrap.wrap(f"FIT of {fit.chip} on {device.name}: {fit.verdict}", _WIDTH, subsequent_indent="  ")
    lines += textwrap.wrap(f"models: {', '.join(fit.models)}", _WIDTH, subsequent_indent="  ")
    rows = [["", "needed", "there are", "share"]]
    rows += [[each.name, _need(each), _number(each.available), each.percent] for each in fit.resources]
    lines += table(rows, left=[0])
    lines.append(_binding(fit))
    for each in fit.resources:
        lines += textwrap.wrap(f"{each.name}: {each.how}", _WIDTH, subsequent_indent="  ")
    rows = [["blocks if all memories were of", "by capacity", "by bandwidth", "by ports", "together", "there are"]]
    for need in fit.memories:
        counts = (need.capacity, need.bandwidth, need.ports, need.total, need.available)
        rows.append([need.kind, *(_number(each) for each in counts)])
    lines += ["", *table(rows, left=[0])]
    return "\n".join([*lines, *_published_lines(published)])


def _binding(fit: Fit) -> str:
    binds = fit.binds
    if binds is None or binds.share is None:
        return "what binds is not known"
    missing = [each.name for each in fit.resources if each.share is None]
    rest = f" ({', '.join(missing)} not known)" if missing else ""
    # Where it is unknown whether a resource suffices, its share is shown, not what is missing.
    return f"binding: {replace(binds, missing='').words}{rest}"


def _number(value: int | None, estimated: bool = False) -> str:
    # Two digits of an estimate are more than its band allows.
    if value is None:
        return "-"
    if not estimated or value < 100:
        return f"{value:,}"
    step = 10 ** (len(str(value)) - 2)
    return f"~{round(value / step) * step:,}"


def _need(resource: Resource) -> str:
    number = _number(resource.need, bool(resource.band))
    return f"at least {number}" if resource.at_least else number


def _published_lines(published: Sequence[Published]) -> Iterator[str]:
    if not published:
        return
    yield ""
    yield "published on this device, not simulated"
    for each in published:
        facts = [f"{each.macs:,} multipliers" if each.macs else "", each.precision]
        facts.append(f"{each.frequency_mhz:g} MHz" if each.frequency_mhz else "")
        figures = {"logic": each.alm, "multiplier blocks": each.dsp, "memory blocks": each.m20k, "power": each.power}
        facts += [f"{name}: {figure}" for name, figure in figures.items() if figure]
        text = f"{each.design}: {'; '.join(fact for fact in facts if fact)}. {each.source}"
        yield from textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="    ")


def fit_json(fit: Fit, published: Sequence[Published] = ()) -> dict[str, Any]:
    """Give the fit as plain data of schema `lstmsim/fit/1`, ready for `json.dumps`; None stands for unknown numbers."""
    keys = ("design", "precision", "macs", "frequency_mhz", "alm", "dsp", "m20k", "power", "source")
    return {
        "schema": FIT_SCHEMA,
        "chip": fit.chip,
        "device": fit.device.name,
        "models": list(fit.models),
        "precision": asdict(fit.precision),
        "fits": fit.fits,
        "verdict": fit.verdict,
        "binds": None if fit.binds is None else fit.binds.name,
        "packings": [None if each is None else each.name for each in fit.packings],
        "array_blocks": fit.array_blocks,
        "tail_blocks": fit.tail_blocks,
        "tail": [_tail_json(each) for each in fit.tail],
        "resources": [asdict(each) | {"fits": each.fits} for each in fit.resources],
        "memories": [asdict(each) | {"bound": each.bound} for each in fit.memories],
        "published": [{key: getattr(each, key) for key in keys} for each in published],
        "sources": dict(fit.device.sources),
    }


def _tail_json(need: TailNeed) -> dict[str, Any]:
    return {
        "kind": need.multiplier.kind,
        "widths": list(need.multiplier.widths),
        "lane": need.lane,
        "count": need.count,
        "packing": None if need.packing is None else need.packing.name,
        "blocks": need.blocks,
    }


def energy_text(energy: Energy) -> str:
    """Write the parts of an inference's energy with the label that they are relative; at most 100 columns."""
    steps = "1 step" if energy.steps == 1 else f"{energy.steps:,} steps"
    batch = f", a batch of {energy.batch}" if energy.batch > 1 else ""
    lines = [f"ENERGY of {energy.model}, {steps}{batch}: {energy.total_nj:,.1f} nJ, {energy.table.name}"]
    total = sum(energy.parts.values()) or 1.0
    rows = [["", "nJ", "share"]]
    rows += [[name, f"{part / 1000:,.1f}", f"{100 * part / total:.1f} %"] for name, part in energy.parts.items()]
    lines += table(rows, left=[0])
    for name, number in energy.left_out.items():
        lines.append(f"left out, no energy in the table: {number:,} of {name}")
    lines += textwrap.wrap(f"{energy.label}. {energy.table.source}", _WIDTH)
    return "\n".join(lines)


def energy_json(energy: Energy) -> dict[str, Any]:
    """Give the energy as plain data of schema `lstmsim/energy/1`, ready for `json.dumps`; parts in pJ."""
    return {
        "schema": ENERGY_SCHEMA,
        "model": energy.model,
        "steps": energy.steps,
        "batch": energy.batch,
        "total_nj": energy.total_nj,
        "parts_pj": dict(energy.parts),
        "operations": asdict(energy.operations),
        "left_out": dict(energy.left_out),
        "table": energy.table.name,
        "label": energy.label,
        "source": energy.table.source,
    }


FORMS = Forms(fit_json, fit_text, lambda fit: fit_json(fit)["resources"])
