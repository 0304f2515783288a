"""Fits and energies as plain data and as documents, with published designs on each device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import singledispatch
from typing import Any

from lstmsim.files.published import Hardware
from lstmsim.report.document import Document, Piece, Section, Text, grid, remark
from lstmsim.report.results import Forms, Keys, picked, plain
from lstmsim.studies.fit.device import Device, Packing, published_on
from lstmsim.studies.fit.energy import Energy
from lstmsim.studies.fit.fit import Fit, Fits, JobTable, MemoryNeed, Resource, fit_summary
from lstmsim.studies.fit.needs import PartNeed, TailNeed

_KEYS: Keys = {
    Device: lambda device: device.name,
    Packing: lambda packing: packing.name,
    Resource: "name need available share how band missing at_least fits",
    MemoryNeed: "kind capacity bandwidth ports total available bound",
    TailNeed: "kind=multiplier.kind widths=multiplier.widths lane count packing blocks",
    JobTable: "jobs steps registers logic memories",
    PartNeed: "name memories logic registers",
    Hardware: "design precision macs frequency_mhz alm dsp m20k power source",
}


@singledispatch
def _data(result: Any) -> dict[str, Any]:
    raise TypeError(type(result))


@_data.register
def fit_json(fit: Fit, published: Sequence[Hardware] = ()) -> dict[str, Any]:
    """Give the fit as plain data of schema `lstmsim/fit/1`; None stands for unknown numbers."""
    return {
        "schema": "lstmsim/fit/1",
        **picked(fit, "chip device models precision fits verdict", _KEYS),
        "binds": None if fit.binds is None else fit.binds.name,
        **picked(fit, "packings array_blocks tail_blocks tail resources memories", _KEYS),
        **({} if fit.table is None else picked(fit, "table parts", _KEYS)),
        "published": plain(published, _KEYS),
        "sources": dict(fit.device.sources),
    }


@_data.register
def _energy_json(energy: Energy) -> dict[str, Any]:
    names = "model steps batch total_nj parts_pj=parts operations left_out table=table.name label source=table.source"
    return {"schema": "lstmsim/energy/1", **picked(energy, names)}


@_data.register
def _fits_json(fits: Fits) -> dict[str, Any]:
    return {
        "schema": "lstmsim/fits/1",
        "fits": [fit_json(each, published_on(each.device)) for each in fits],
        "summary": fit_summary(fits).json,
        "energy": [each.to_dict() for each in fits.energy],
    }


@singledispatch
def _document(result: Any) -> Document:
    raise TypeError(type(result))


@_document.register
def fit_document(fit: Fit, published: Sequence[Hardware] = ()) -> Document:
    """Say what is needed, what there is and what binds; then published designs on the device."""
    rows = [[each.name, _need(each), each.available, each.percent] for each in fit.resources]
    memories = [
        [need.kind, need.capacity, need.bandwidth, need.ports, need.total, need.available] for need in fit.memories
    ]
    causes = ["by capacity", "by bandwidth", "by ports", "together", "there are"]
    shown = Section.of(
        Text(f"models: {', '.join(fit.models)}", hang=2),
        grid(["<", "needed", "there are", "share"], rows),
        _binding(fit),
        *(Text(f"{each.name}: {each.how}", hang=2) for each in fit.resources),
    )
    headline = f"FIT of {fit.chip} on {fit.device.name}: {fit.verdict}"
    blocks = grid(["<blocks if all memories were of", *causes], memories)
    return Document.of(headline, shown, blocks, _table(fit), _designs(published))


def _table(fit: Fit) -> Section | None:
    """What each part takes where jobs are a table, and what of it that costs."""
    own = fit.table
    if own is None:
        return None
    title = f"jobs as a table that the host writes: up to {own.jobs:,} jobs of up to {own.steps:,} steps"
    if own.registers is None:
        return Section.of("what it costs is not known without a packing", title=title)
    more = (
        f"{own.registers:+,} registers, about {own.logic:+,} {fit.device.logic.name}, {own.memories:+,} memory blocks"
    )
    text = (
        f"beside the same chip with jobs as constants and frames at the host: {more}. Each thread chooses a job's row "
        "from registers (in `issue`, the steps in `tail control`); frames of all jobs lie in the chip's memories."
    )
    rows = [[each.name, each.memories, each.logic, each.registers] for each in fit.parts]
    return Section.of(
        Text(text), grid(["<part", "memory blocks", fit.device.logic.name, "registers"], rows), title=title
    )


@_document.register
def _energy_document(energy: Energy) -> Document:
    title, *parts = _spent(energy).parts
    return Document(title.text if isinstance(title, Text) else "", (Section(tuple(parts)),))


@_document.register
def _fits_document(fits: Fits) -> Document:
    """Each fit, each energy, and a summary of the verdicts."""
    shown: list[Piece] = []
    for fit in fits:
        document = fit_document(fit, published_on(fit.device))
        shown += [Text(document.headline, hang=2), *document.sections]
    return Document.of(
        "",
        *shown,
        *map(_spent, fits.energy),
        Section.of(*(Text(each, hang=2) for each in fit_summary(fits).paragraphs)),
    )


def _binding(fit: Fit) -> str:
    binds = fit.binds
    if binds is None or binds.share is None:
        return "what binds is not known"
    missing = [each.name for each in fit.resources if each.share is None]
    rest = f" ({', '.join(missing)} not known)" if missing else ""
    # Where it is unknown whether a resource suffices, its share is shown, not what is missing.
    return f"binding: {replace(binds, missing='').words}{rest}"


def _need(resource: Resource) -> str:
    """The need; two digits of an estimate are more than its band allows."""
    need = resource.need
    if need is not None and resource.band and need >= 100:
        step = 10 ** (len(str(need)) - 2)
        number = f"~{round(need / step) * step:,}"
    else:
        number = "-" if need is None else f"{need:,}"
    return f"at least {number}" if resource.at_least else number


def _designs(published: Sequence[Hardware]) -> Section | None:
    texts = []
    for each in published:
        facts = [f"{each.macs:,} multipliers" if each.macs else "", each.precision]
        facts.append(f"{each.frequency_mhz:g} MHz" if each.frequency_mhz else "")
        figures = {"logic": each.alm, "multiplier blocks": each.dsp, "memory blocks": each.m20k, "power": each.power}
        facts += [f"{name}: {figure}" for name, figure in figures.items() if figure]
        texts.append(Text(f"  {each.design}: {'; '.join(fact for fact in facts if fact)}. {each.source}", hang=4))
    return Section.of(*texts, title="PUBLISHED on this device, not simulated") if texts else None


def _spent(energy: Energy) -> Section:
    """The parts of a job's energy, with the label that they are relative."""
    steps = "1 step" if energy.steps == 1 else f"{energy.steps:,} steps"
    batch = f", a batch of {energy.batch}" if energy.batch > 1 else ""
    total = sum(energy.parts.values()) or 1.0
    rows = [[name, f"{part / 1000:,.1f}", f"{100 * part / total:.1f} %"] for name, part in energy.parts.items()]
    missing = energy.left_out.items()
    return Section.of(
        f"ENERGY of {energy.model}, {steps}{batch}: {energy.total_nj:,.1f} nJ, {energy.table.name}",
        grid(["<", "nJ", "share"], rows),
        *(f"left out, no energy in the table: {number:,} of {name}" for name, number in missing),
        remark(f"{energy.label}. {energy.table.source}"),
    )


def _records(result: Fit | Fits) -> Iterable[dict[str, Any]]:
    """A row for each resource; of several devices with its name and verdict."""
    if isinstance(result, Fit):
        return list(fit_json(result)["resources"])
    return [{"device": fit.device.name, "verdict": fit.verdict, **row} for fit in result for row in _records(fit)]


FORMS = Forms(_data, _document, _records)
