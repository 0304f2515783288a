"""`lstmsim import`."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from lstmsim.cli.outputs import check_outputs, check_suffix, remark, status
from lstmsim.errors import InputError, Mistake

if TYPE_CHECKING:
    from lstmsim.formats.onnx_file import ImportedModel
    from lstmsim.workload.model import Layer

__all__ = ["command"]


@click.command(name="import", short_help="Turn an ONNX network into a model file.")
@click.argument("file", type=click.Path())
@click.option("--out", metavar="FILE", help="Model file to write (.yaml); default: FILE's name here, as .yaml.")
@click.option("--name", metavar="NAME", help="Name of the model; default: FILE's name.")
@click.option("--licence", metavar="TEXT", help="Licence of the network, kept in the model file.")
@click.option("--force", is_flag=True, help="Replace model files that are there already.")
def command(file: str, out: str | None, name: str | None, licence: str | None, force: bool) -> None:
    """Turn the recurrent layers of a real network, FILE.onnx, into a model file that scenarios can name.

    Reads shapes only, never runs anything. A network with several separate recurrent parts gives a file
    each, numbered. Needs the extra: pip install 'lstmsim[onnx]'.

    \b
    lstmsim import speech.onnx --out speech.yaml
    """
    from lstmsim.formats.model_writer import write_model_file
    from lstmsim.formats.onnx_file import read_onnx

    check_suffix("FILE", file, [".onnx"])
    target = out if out is not None else os.path.splitext(os.path.basename(file))[0] + ".yaml"
    check_suffix("--out", target, [".yaml", ".yml"])
    if name is not None and not (name.strip() and name.isprintable()):
        raise InputError(Mistake("--name", f"expected printable letters, got {name!r}"))
    with status(f"reading {file}"):
        models = read_onnx(file).models
    targets = _numbered(target, len(models))
    for each in targets:
        check_outputs({"--out": each}, inputs=[file])
    there = [each for each in targets if os.path.lexists(each)]
    if there and not force:
        raise InputError([Mistake(f"--out {each}", "exists already; --force replaces it") for each in there])
    for number, (found, path) in enumerate(zip(models, targets, strict=True), start=1):
        _describe(found)
        model = found.model
        if name is not None:
            model = replace(model, name=name if len(models) == 1 else f"{name}-{number}")
        write_model_file(model, path, source=found.source, licence=licence, notes=found.notes)
        click.echo(f"wrote {path}")


def _numbered(target: str, count: int) -> list[str]:
    """`target` itself for one model, else `target` with -1, -2 ... before its suffix."""
    stem, suffix = os.path.splitext(target)
    return [target] if count == 1 else [f"{stem}-{number}{suffix}" for number in range(1, count + 1)]


def _describe(found: ImportedModel) -> None:
    layers = (_layer(layer, node) for layer, node in zip(found.model.layers, found.nodes, strict=True))
    click.echo(f"{found.model.name}: " + "; ".join(layers))
    for note in found.notes:
        remark(f"note: {note}")


def _layer(layer: Layer, node: str) -> str:
    both = "bidirectional " if layer.bidirectional else ""
    return f"{both}{layer.cell.name} of {layer.hidden} units over {layer.input} inputs ({node})"
