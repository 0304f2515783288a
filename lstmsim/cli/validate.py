"""`lstmsim validate`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from lstmsim.base.errors import InputError, Mistake
from lstmsim.cli.options import ENGINES
from lstmsim.cli.outputs import check_outputs, progress, remark

if TYPE_CHECKING:
    from lstmsim.studies.validate.rows import Validation

__all__ = ["GROUPS", "command"]

#: Named here too, because asking `lstmsim.studies.validate` would import numpy for a help text.
GROUPS = ("intel-npu-rtl", "intel-npu-cpp", "brainwave-fitted", "brainwave-held-out", "v100", "claims")


@click.command(name="validate", short_help="Rerun every published figure that a model claims to reproduce.")
@click.argument("groups", metavar="[GROUP]...", nargs=-1, type=click.Choice(GROUPS))
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default="fast",
    show_default=True,
    help="Both give the same numbers.",
)
@click.option("--json", "json_path", metavar="FILE", help="Write every row as JSON; - is standard output.")
@click.option("--markdown", "markdown_path", metavar="FILE", help="Write every row as Markdown; - is standard output.")
def command(groups: tuple[str, ...], engine: str, json_path: str | None, markdown_path: str | None) -> None:
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
    from lstmsim.studies.validate.report import validation_markdown

    texts = {}
    if json_path is not None:
        texts[json_path] = json.dumps(validation.to_dict(), indent=2, allow_nan=False) + "\n"
    if markdown_path is not None:
        texts[markdown_path] = validation_markdown(validation)
    for path, text in texts.items():
        if path != "-":
            with whole_file(path) as file:
                file.write(text)
    click.echo(texts.get("-", validation.to_text() + "\n"), nl=False)
    for path in texts:
        if path != "-":
            remark(f"wrote {path}")
