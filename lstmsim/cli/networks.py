"""`lstmsim accuracy` and `lstmsim import`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from lstmsim.base.errors import InputError, Mistake
from lstmsim.cli.options import (
    check_outputs,
    check_suffix,
    inputs_of,
    json_option,
    overrides_option,
    progress,
    remark,
    status,
    write_json,
)

if TYPE_CHECKING:
    from lstmsim.importers.imported import ImportedModel, OperatorTable
    from lstmsim.model.model import Layer
    from lstmsim.studies.accuracy.study import AccuracyReport


_PLOTTED_BITS = "4:12"


@click.command(name="accuracy", short_help="Compare fixed point with floating point: what do 8 bits cost?")
@click.argument("scenario", type=click.Path())
@overrides_option
@click.option(
    "--random-weights",
    metavar="SEED",
    type=click.IntRange(0, 2**32 - 1),
    help="Draw weights for models that have none.",
)
@click.option("--steps", is_flag=True, help="Show every step too.")
@click.option(
    "--bits",
    "bits_text",
    metavar="LOW:HIGH",
    help=f"Repeat with weights and vectors of each width in this range; with --plot {_PLOTTED_BITS} unless given.",
)
@json_option("the report")
@click.option(
    "--plot",
    "plot_path",
    metavar="FILE",
    help="Draw the accuracy of each width: .png, .svg or .pdf; the numbers go next to it, as .csv.",
)
def accuracy_command(
    scenario: str,
    overrides: tuple[str, ...],
    random_weights: int | None,
    steps: bool,
    bits_text: str | None,
    json_path: str | None,
    plot_path: str | None,
) -> None:
    """Compare fixed point, as the `precision` of the file SCENARIO says, with float64, for each of its jobs.

    Formats are calibrated on the frames of `precision.calibration`; without that on the very frames that are judged,
    which is optimistic and said. Of a scenario with a network of g2p-en also the share of words is shown
    whose phonemes do not change. Nothing is simulated for this: `lstmsim simulate --check-numerics` shows that what is
    simulated computes the same fixed-point numbers, bit for bit.

    \b
    lstmsim accuracy scenario.yaml --steps
    lstmsim accuracy scenario.yaml --set precision.weight_scale=tensor
    lstmsim accuracy scenario.yaml --bits 4:12 --plot accuracy.png
    """
    bits = _bits(bits_text if plot_path is None else bits_text or _PLOTTED_BITS)
    _check(inputs_of(scenario, overrides), json_path, plot_path)
    with progress("comparing with float64") as show:
        from lstmsim.studies.accuracy.request import accuracy

        report = accuracy(scenario, overrides=overrides, random_weights=random_weights, bits=bits, progress=show)
    written = _write(report, json_path, plot_path)
    if json_path != "-":
        from lstmsim.report.renderings import text
        from lstmsim.studies.accuracy.report import accuracy_document

        click.echo(text(accuracy_document(report, steps)))
    for path in written:
        remark(f"wrote {path}")


def _bits(text: str | None) -> range:
    """The widths of LOW:HIGH, none without a text."""
    if text is None:
        return range(0)
    from lstmsim.model.model import WIDTHS

    least, most = WIDTHS["weight_bits"]
    match = re.fullmatch(r"(\d{1,4}):(\d{1,4})", text, re.ASCII)
    low, high = (int(each) for each in match.groups()) if match else (0, 0)
    if not least <= low <= high <= most:
        raise InputError(
            Mistake(f"--bits {text}", f"expected LOW:HIGH with {least} <= LOW <= HIGH <= {most}, like 4:12")
        )
    return range(low, high + 1)


def _check(inputs: Iterable[str], json_path: str | None, plot_path: str | None) -> None:
    """Refuse outputs that cannot be written before any time is spent."""
    outputs = {"--json": json_path, "--plot": plot_path}
    if plot_path is not None:
        from lstmsim.report.pictures.figures import SUFFIXES
        from lstmsim.studies.accuracy.picture import numbers_path

        check_suffix("--plot", plot_path, SUFFIXES)
        outputs["--plot's numbers"] = numbers_path(plot_path)
    check_outputs(outputs, inputs=inputs)


def _write(report: AccuracyReport, json_path: str | None, plot_path: str | None) -> list[str]:
    """Write the files that were asked for; return their names, standard output left out."""
    written = []
    if plot_path is not None:
        from lstmsim.studies.accuracy.picture import numbers_path
        from lstmsim.studies.accuracy.request import plot_accuracy

        with status(f"drawing {os.path.basename(plot_path)}"):
            plot_accuracy(report, plot_path)
        written += [plot_path, numbers_path(plot_path)]
    if json_path is not None:
        write_json(json_path, report.to_dict())
        written += [json_path] if json_path != "-" else []
    return written


@click.command(name="import", short_help="Turn a network's file into a model file and its weights.")
@click.argument("file", type=click.Path())
@click.option("--out", metavar="FILE", help="Model file to write (.yaml); default: FILE's name here, as .yaml.")
@click.option("--name", metavar="NAME", help="Name of the model; default: FILE's name.")
@click.option("--licence", metavar="TEXT", help="Licence of the network, kept in the model file.")
@click.option("--no-weights", is_flag=True, help="Read and write shapes only.")
@click.option("--heads", is_flag=True, help="Make dense layers of plain products behind the last layer (ONNX).")
@click.option("--cell", type=click.Choice(["rnn", "rnn-relu"]), help="What an RNN is if FILE does not say: tanh, relu.")
@click.option("--force", is_flag=True, help="Replace model files and weights that are there already.")
def import_command(
    file: str,
    out: str | None,
    name: str | None,
    licence: str | None,
    no_weights: bool,
    heads: bool,
    cell: str | None,
    force: bool,
) -> None:
    """Turn the recurrent layers of a real network into a model file that scenarios can name.

    FILE is .onnx, .safetensors with PyTorch's names, .keras or .h5 (Keras, also weights only), or .pt, .pth, .ckpt,
    .bin (PyTorch: state dictionaries, checkpoints, whole modules, TorchScript). The weights go beside the model
    file, as .safetensors. Nothing in FILE is ever executed; of other files only the data files of an ONNX network
    are opened (speech.onnx.data), in its own folder. A network with several separate recurrent parts gives a file
    each, numbered. A table says what becomes of every operator of an ONNX network, and how much of the work is left
    out. ONNX needs the extra: pip install 'lstmsim[onnx]', Keras 'lstmsim[keras]'.

    \b
    lstmsim import speech.onnx --out speech.yaml
    """
    from lstmsim.files.scenario.written import save_model, weights_path
    from lstmsim.importers.files import SUFFIXES
    from lstmsim.studies.importing import import_model, renamed, targets_of

    check_suffix("FILE", file, SUFFIXES)
    target = out if out is not None else _default_target(file)
    check_suffix("--out", target, [".yaml", ".yml"])
    if name is not None and not (name.strip() and name.isprintable()):
        raise InputError(Mistake("--name", f"expected printable letters, got {name!r}"))
    with status(f"reading {file}"):
        models = import_model(file, weights=not no_weights, heads=heads, cell=cell)
    targets = targets_of(target, len(models))
    weights = [weights_path(path) if each.network else None for each, path in zip(models, targets, strict=True)]
    read = [file, *dict.fromkeys(path for each in models for path in each.files)]
    _check_import_model(read, list(zip(targets, weights, strict=True)), force)
    for imported in models:
        _describe(imported)
    operators = models[0].operators
    if operators is not None:
        _show(operators)
    for imported, path in zip(renamed(models, name), targets, strict=True):
        save_model(imported, path, licence=licence, force=force)
        click.echo(f"wrote {path}{f' and {weights_path(path)}' if imported.network else ''}")


def _default_target(file: str) -> str:
    """Name the model file for FILE; it ends in `-model` where the weights would otherwise take FILE's own place."""
    from lstmsim.files.scenario.written import weights_path

    stem = os.path.splitext(os.path.basename(file))[0]
    taken = os.path.realpath(weights_path(f"{stem}.yaml")) == os.path.realpath(file)
    return f"{stem}-model.yaml" if taken else f"{stem}.yaml"


def _check_import_model(read: list[str], pairs: list[tuple[str, str | None]], force: bool) -> None:
    """Raise `InputError` unless every model file and its weights can be written and replace nothing of `read`."""
    for path, beside in pairs:
        check_outputs({"--out": path, "weights": beside}, inputs=read)
    wanted = [each for pair in pairs for each in pair if each is not None]
    there = [each for each in wanted if os.path.lexists(each)]
    if there and not force:
        raise InputError([Mistake(f"--out {each}", "exists already; --force replaces it") for each in there])


def _describe(imported: ImportedModel) -> None:
    layers = (_layer(layer, node) for layer, node in zip(imported.model.layers, imported.nodes, strict=True))
    click.echo(f"{imported.model.name}: " + "; ".join(layers))
    for note in imported.notes:
        remark(f"note: {note}")


def _show(operators: OperatorTable) -> None:
    """The table of operators, and a warning where much of the work is left out."""
    for line in operators.lines():
        click.echo(f"  {line}")
    warning = operators.warning()
    if warning:
        remark(warning)


def _layer(layer: Layer, node: str) -> str:
    both = "bidirectional " if layer.bidirectional else "reverse " if layer.reverse else ""
    return f"{both}{layer.cell.name} of {layer.hidden} units over {layer.input} inputs ({node})"
