"""`lstmsim list`, `validate` and `fit`."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING

import click

from lstmsim.base.errors import InputError, Mistake
from lstmsim.cli.options import (
    check_outputs,
    engine_option,
    inputs_of,
    json_option,
    overrides_option,
    progress,
    remark,
    write_json,
)
from lstmsim.studies.known.run import KINDS, list_known

if TYPE_CHECKING:
    from lstmsim.studies.validate.rows import Validation


_WIDTH = 100
#: Widest column of names, where it is not as for most kinds.
_NAMES = {"keys": 46}


@click.command(name="list", short_help="Show models, chips, machines, devices, cells, graphs, policies, engines.")
@click.argument("kind", required=False, type=click.Choice(list(KINDS)))
@json_option("the list")
def list_command(kind: str | None, json_path: str | None) -> None:
    """Show models, chips, machines, devices, cells, graphs, policies, engines, experiments, or only one KIND of them.

    Each has its source; a machine says what its cycles are exact against, and what is assumed. The KIND keys
    shows every key of a file with its meaning, bounds, default and source, and only if asked for.
    """
    from lstmsim.studies.shared.files_read import files_that_come_along

    check_outputs({"--json": json_path}, inputs=files_that_come_along())
    known = list_known(kind)
    if json_path is not None:
        write_json(json_path, known)
        if json_path == "-":
            return
    kinds = {each: rows for each, rows in known.items() if each in KINDS}
    click.echo("\n\n".join(_section(each, [(row["name"], row["source"]) for row in kinds[each]]) for each in kinds))


def _section(kind: str, rows: list[tuple[str, str]]) -> str:
    """A heading and one entry a line, its source wrapped beside the name."""
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


@click.command(name="validate", short_help="Rerun every published figure that a model claims to reproduce.")
@click.argument("groups", metavar="[GROUP]...", nargs=-1, type=click.Choice(GROUPS))
@engine_option
@json_option("every row")
@click.option("--markdown", "markdown_path", metavar="FILE", help="Write every row as Markdown; - is standard output.")
def validate_command(groups: tuple[str, ...], engine: str, json_path: str | None, markdown_path: str | None) -> None:
    """Simulate every published figure that a model claims to reproduce, and compare: of all, or of each GROUP.

    Groups are intel-npu-rtl, intel-npu-cpp, brainwave-fitted, brainwave-held-out, v100 and claims. Every row has a band
    that its error must not leave; claims of papers without tables are listed with the condition assumed. The exit code
    is 1 if anything is not as promised, and standard error says what. v100 takes most of the time, and with the
    reference engine (as the claims on kernels of a GPU do) very long.

    \b
    lstmsim validate
    lstmsim validate intel-npu-rtl claims --engine reference
    lstmsim validate --json validation.json --markdown validation.md
    """
    from lstmsim.studies.shared.files_read import files_that_come_along

    check_outputs({"--json": json_path, "--markdown": markdown_path}, inputs=files_that_come_along())
    if json_path == "-" == markdown_path:
        raise InputError(Mistake("--markdown -", "standard output is taken by --json -; expected a file"))
    with progress("validating") as show:
        from lstmsim.studies.validate.request import validate

        validation = validate(groups, engine=engine, progress=show)
    _write(validation, json_path, markdown_path)
    for sentence in validation.failures:
        remark(sentence)
    if validation.failures:
        raise click.exceptions.Exit(1)


def _write(validation: Validation, json_path: str | None, markdown_path: str | None) -> None:
    """Write the files first; the text goes to standard output unless one of the files does."""
    from lstmsim.base.files import whole_file

    texts = {}
    if json_path is not None:
        texts[json_path] = json.dumps(validation.to_dict(), indent=2, allow_nan=False) + "\n"
    if markdown_path is not None:
        texts[markdown_path] = f"# Validation\n\n{validation.to_markdown()}\n"
    for path, text in texts.items():
        if path != "-":
            with whole_file(path) as file:
                file.write(text)
    click.echo(texts.get("-", validation.to_text() + "\n"), nl=False)
    for path in texts:
        if path != "-":
            remark(f"wrote {path}")


@click.command(name="fit", short_help="Does a scenario's chip fit an FPGA, and what binds?")
@click.argument("scenario", type=click.Path())
@click.option(
    "--device", "devices", metavar="NAME", multiple=True, help="A known device or a device file; default: all known."
)
@click.option("--energy", "with_energy", is_flag=True, help="Show the energy of each job too, relative.")
@overrides_option
@json_option()
def fit_command(
    scenario: str, devices: tuple[str, ...], with_energy: bool, overrides: tuple[str, ...], json_path: str | None
) -> None:
    """Say what the chip of the file SCENARIO needs of an FPGA, with the weights of its models on the chip.

    DSP blocks with the packing named and the multipliers behind the array, block RAM by capacity, bandwidth and
    ports, and logic as an estimate with its band; which of them binds. The last lines say on which devices the chip
    fits, on which it does not and why, and of which nobody can tell. Every number of a device has its source in its
    file.

    \b
    lstmsim fit scenario.yaml --device stratix-10-gx-2800
    lstmsim fit scenario.yaml --energy
    """
    check_outputs({"--json": json_path}, inputs=inputs_of(scenario, overrides, devices))
    from lstmsim.studies.fit.request import fit

    fits = fit(scenario, devices, with_energy=with_energy, overrides=overrides)
    if json_path is not None:
        write_json(json_path, fits.to_dict())
    if json_path != "-":
        click.echo(fits.to_text())
        if json_path is not None:
            remark(f"wrote {json_path}")
