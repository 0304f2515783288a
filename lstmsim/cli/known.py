"""`lstmsim list`, `validate` and `fit`."""

from __future__ import annotations

import textwrap
from typing import Any

import click

from lstmsim.cli.options import Output, Outputs, command, json_output, progress, remark, write_json, write_text
from lstmsim.studies.fit.request import FitRequest
from lstmsim.studies.known.run import KINDS, list_known
from lstmsim.studies.validate.request import ValidateRequest

_WIDTH = 100
#: Widest column of names, where it is not as for most kinds.
_NAMES = {"keys": 46}


@command(
    "list",
    json_output("the list"),
    Output("json_schema", "Write a JSON schema of requests and of the keys of files; - is standard output."),
    more=[
        click.Argument(["kind"], required=False, type=click.Choice(list(KINDS))),
        click.Argument(["word"], required=False),
    ],
)
def list_command(files: Outputs, kind: str | None, word: str | None) -> None:
    """Show models, chips, machines, devices, cells, graphs, policies, engines, experiments, or only one KIND of them.

    Each has its source; a machine says with what its cycles agree exactly, and what is assumed. The KIND keys
    shows every key of a file with its meaning, bounds, default and source, and only if asked for. WORD shows only
    rows that contain it.

    \b
    lstmsim list keys threads
    """
    known = list_known(kind)
    if kind is not None and word is not None:
        found = [row for row in known[kind] if word.casefold() in f"{row['name']} {row['source']}".casefold()]
        known = {**known, kind: found}
    files.write(known, {"json": lambda path: write_json(path, known), "json_schema": _write_schema})
    kinds = {each: rows for each, rows in known.items() if each in KINDS}
    files.show(
        lambda: "\n\n".join(_section(each, [(row["name"], row["source"]) for row in kinds[each]]) for each in kinds)
    )


def _write_schema(path: str) -> None:
    from lstmsim.studies.known.json_schema import json_schema

    write_json(path, json_schema())


def _section(kind: str, rows: list[tuple[str, str]]) -> str:
    """A heading and one entry a line, its source wrapped next to the name."""
    if not rows:
        missing = "none here; they come with the source checkout" if kind == "experiments" else "none"
        return f"{kind.upper()}\n  {missing}"
    width = min(_NAMES.get(kind, 34), max(len(name) for name, _ in rows))
    lines = []
    for name, source in rows:
        indent = " " * (width + 4)
        wrapped = textwrap.wrap(source or "-", _WIDTH - len(indent), break_on_hyphens=False) or ["-"]
        lines.append(f"  {name.ljust(width)}  {wrapped[0]}")
        lines.extend(indent + line for line in wrapped[1:])
    return "\n".join([kind.upper(), *lines])


#: Named here too, because asking `lstmsim.studies.validate` would import numpy for a help text.
GROUPS = ("intel-npu-rtl", "intel-npu-cpp", "brainwave-fitted", "brainwave-held-out", "v100", "claims")


@command(
    "validate",
    *(ValidateRequest, json_output("every row")),
    Output("markdown", "Write every row as Markdown; - is standard output."),
    left_out=("groups",),
    more=[click.Argument(["groups"], metavar="[GROUP]...", nargs=-1, type=click.Choice(GROUPS))],
)
def validate_command(files: Outputs, groups: tuple[str, ...], **asked: Any) -> None:
    """Simulate every published figure that a model claims to reproduce, and compare: of all, or of each GROUP.

    Groups are intel-npu-rtl, intel-npu-cpp, brainwave-fitted, brainwave-held-out, v100 and claims. Every row has a band
    that its error must not leave; claims of papers without tables are listed with the condition assumed. The exit code
    is 1 if a figure or a claim is not as promised, and standard error names it. v100 takes most of the time, and with
    the reference engine (as the claims on kernels of a GPU do) very long.

    \b
    lstmsim validate
    lstmsim validate intel-npu-rtl claims --engine reference
    lstmsim validate --json validation.json --markdown validation.md
    """
    with progress("validating") as show:
        from lstmsim.studies.validate.request import validate

        validation = validate(groups, **asked, progress=show)
    files.finish(
        validation, {"markdown": lambda path: write_text(path, f"# Validation\n\n{validation.to_markdown()}\n")}
    )
    for sentence in validation.failures:
        remark(sentence)
    if validation.failures:
        raise click.exceptions.Exit(1)


@command("fit", FitRequest, json_output())
def fit_command(files: Outputs, **asked: Any) -> None:
    """Say what the chip of the file SCENARIO needs of an FPGA, with the weights of its models on the chip.

    The needs are DSP blocks, with the packing named and the multipliers outside the array, block RAM by capacity,
    bandwidth and ports, and logic as an estimate with its band; and which of them binds. The last lines say on which
    devices the chip fits, on which it does not and why, and for which this is unknown. Every number of a device has its
    source in its file.

    \b
    lstmsim fit scenario.yaml --device stratix-10-gx-2800
    lstmsim fit scenario.yaml --energy
    """
    from lstmsim.studies.fit.request import fit

    files.finish(fit(**asked))
