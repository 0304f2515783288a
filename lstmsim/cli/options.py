"""Options that several commands have, and output files: checked before the work begins, named when it is done."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import click

from lstmsim.base.errors import InputError, Mistake

F = TypeVar("F", bound=Callable[..., Any])

#: Named here too, because asking `lstmsim.engines` would import numpy for a help text.
ENGINES = ("fast", "reference")

engine_option = click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default="fast",
    show_default=True,
    help="Engine that simulates; both give the same numbers.",
)


overrides_option = click.option(
    "--set", "overrides", metavar="PATH=VALUE", multiple=True, help="Change a value of the scenario; repeatable."
)


def json_option(content: str = "the result", name: str = "json_path") -> Callable[[F], F]:
    """The file for all results as JSON: `--json`."""
    return click.option("--json", name, metavar="FILE", help=f"Write {content} as JSON; - is standard output.")


def chip_options(default: str, example: str) -> Callable[[F], F]:
    """The chip of a command that needs no scenario, and what is changed of it: `chip` and `chip_overrides`."""
    chip = click.option(
        "--chip", default=default, show_default=True, metavar="CHIP", help="A preset's name or a chip's file."
    )
    changes = click.option(
        "--chip-set",
        "chip_overrides",
        metavar="PATH=VALUE",
        multiple=True,
        help=f"Change a value of the chip, like {example}; repeatable.",
    )
    return lambda function: chip(changes(function))


def setting_option(name: str, help: str) -> Callable[[F], F]:
    """Parameters of what a command does: `--set`."""
    return click.option("--set", name, metavar="NAME=VALUE", multiple=True, help=f"{help}; repeatable.")


def seed_option(numbers: str) -> Callable[[F], F]:
    """The seed of drawn numbers: `seed`."""
    return click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help=numbers)


def check_suffix(option: str, path: str | None, suffixes: Sequence[str]) -> None:
    """Raise `InputError` unless `path` (None: not asked for) ends in one of `suffixes`."""
    if path is not None and not path.lower().endswith(tuple(suffixes)):
        raise InputError(Mistake(_place(option, path), f"expected a file name that ends in {', '.join(suffixes)}"))


def check_outputs(outputs: Mapping[str, str | None], inputs: Iterable[str] = (), kept: Sequence[str] = ()) -> None:
    """Raise `InputError` with every output that cannot be written or would replace another file in use."""
    from lstmsim.base.files import identity_of, was_read

    mistakes = []
    # Inputs may be told by reading files, which is worth the time only if something is written.
    written = any(path not in (None, "-") for path in outputs.values())
    taken = {identity_of(path): "the input" for path in (inputs if written else ())}
    for option, path in outputs.items():
        if path is None:
            continue
        place = _place(option, path)
        if path == "-" or not path:
            if not path or sys.stdout is None:
                mistakes.append(Mistake(place, "standard output is closed" if path else "the name is empty"))
            continue
        if "\0" in path:
            mistakes.append(Mistake(place, "is not a path"))
            continue
        real = os.path.realpath(path)
        problem = None if path in kept else _problem(real)
        if problem:
            mistakes.append(Mistake(place, problem))
        # Devices (/dev/null, /dev/stdout) may take more than one output.
        if os.path.isfile(real) or not os.path.exists(real):
            same = identity_of(path)
            other = taken.get(same, "the input" if was_read(path) else None)
            if other is not None:
                mistakes.append(Mistake(place, f"is also {other}; expected another file"))
            taken.setdefault(same, f"the output of {option}")
    if mistakes:
        raise InputError(mistakes)


def inputs_of(scenario: str, overrides: Sequence[str] = (), others: Sequence[str | None] = ()) -> Iterator[str]:
    """List the files that a command on a scenario reads.

    They are the scenario's own, the files that it names after `--set`, those of `others` that are files, and those that
    come with lstmsim.
    """
    from lstmsim.studies.shared.files_read import files_read_by, files_that_come_along

    yield from files_read_by(scenario, overrides)
    yield from files_that_come_along()
    yield from (each for each in others if each is not None and "\0" not in each and os.path.isfile(each))


def _place(option: str, path: str) -> str:
    return f"{option} {path or repr(path)}"


def _problem(path: str) -> str | None:
    """Say why a file cannot be written under `path`, as far as that can be seen without writing."""
    if "\0" in path:
        return "is not a path"
    if os.path.isdir(path):
        return "is a folder, expected a file"
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        return f"there is no folder {folder}"
    # What exists and is no plain file is written into, everything else is replaced.
    writable = path if os.path.exists(path) else folder
    return None if os.access(writable, os.W_OK) else f"no permission to write {writable}"


def write_json(path: str, content: Mapping[str, Any]) -> None:
    """Write plain data as JSON, whole or not at all; to standard output if the path is `-`."""
    text = json.dumps(content, indent=2, allow_nan=False) + "\n"
    if path == "-":
        click.echo(text, nl=False)
        return
    from lstmsim.base.files import whole_file

    with whole_file(path) as file:
        file.write(text)


def chip_remarks(scenario: str, overrides: Sequence[str], chips: Sequence[str] = ()) -> None:
    """Say on standard error what the scenario's chip, and other chips, have to say about its jobs."""
    from lstmsim.files.scenario.requests import load_requests
    from lstmsim.studies.compare.run import chips_of

    own = load_requests(scenario, overrides, 1).scenario
    for chip in chips_of(own, chips):
        for text in replace(own, chip=chip).remarks:
            remark(f"{chip.name}: {text}" if chips else text)


def remark(text: str) -> None:
    """Print a line on standard error."""
    click.echo(text, err=True)


@contextmanager
def status(text: str) -> Iterator[None]:
    """Show a text while the block runs, on a terminal only; it is gone at the end."""
    stream = sys.stderr
    if stream is None or not stream.isatty():
        yield
        return
    stream.write(f"{text} ...")
    stream.flush()
    try:
        yield
    finally:
        stream.write("\r" + " " * (len(text) + 4) + "\r")
        stream.flush()


@contextmanager
def progress(text: str) -> Iterator[Callable[[int, int], None] | None]:
    """Give something to call with (done, total) while the block runs, shown as percent; None without a terminal."""
    stream = sys.stderr
    if stream is None or not stream.isatty():
        yield None
        return
    shown = -1

    def show(done: int, total: int) -> None:
        nonlocal shown
        percent = 100 * done // max(total, 1)
        if percent != shown:
            shown = percent
            stream.write(f"\r{text} {percent:3d} %")
            stream.flush()

    try:
        yield show
    finally:
        stream.write("\r" + " " * (len(text) + 6) + "\r")
        stream.flush()
