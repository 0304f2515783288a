"""`lstmsim import`."""

from __future__ import annotations

import os

import click

from lstmsim.cli.outputs import check_outputs, check_suffix
from lstmsim.errors import InputError, Mistake

__all__ = ["command"]


@click.command(name="import", short_help="Turn an ONNX network into a model file.")
@click.argument("file", type=click.Path())
@click.option("--out", metavar="FILE", help="Model file to write (.yaml); default: FILE's name here, as .yaml.")
@click.option("--name", metavar="NAME", help="Name of the model; default: FILE's name.")
@click.option("--force", is_flag=True, help="Replace the model file if there is one.")
def command(file: str, out: str | None, name: str | None, force: bool) -> None:
    """Turn the recurrent layers of a real network, FILE.onnx, into a model file that scenarios can name.

    Reads shapes only, never runs anything. Needs the extra: pip install 'lstmsim[onnx]'.

    \b
    lstmsim import speech.onnx --out speech.yaml
    """
    check_suffix("FILE", file, [".onnx"])
    stem = os.path.splitext(os.path.basename(file))[0]
    target = out if out is not None else f"{stem}.yaml"
    check_suffix("--out", target, [".yaml", ".yml"])
    check_outputs({"--out": target}, inputs=[file])
    if os.path.exists(target) and not force:
        raise InputError(Mistake(f"--out {target}", "exists already; --force replaces it"))
