"""`lstmsim accuracy` and `lstmsim import`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import click

import lstmsim
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.keys import Key
from lstmsim.cli import options
from lstmsim.studies.accuracy.request import AccuracyRequest
from lstmsim.studies.importing import ImportRequest

if TYPE_CHECKING:
    from lstmsim.importers.imported import ImportedModel
    from lstmsim.model.model import Layer

_PLOTTED_BITS = range(4, 13)


class _Shown:
    steps: Annotated[bool, Key("Show every step, too.")] = False


@options.command(
    "accuracy",
    *(AccuracyRequest, _Shown),
    options.json_output("the report"),
    options.picture_output(
        "plot", "Draw the accuracy of each width, with the numbers next to it as .csv", options.numbers_beside
    ),
)
def accuracy_command(files: options.Outputs, bits: Sequence[int], steps: bool, **asked: Any) -> None:
    """Compare fixed point, as the `precision` of the file SCENARIO says, with float64, for each of its jobs.

    Formats are calibrated on the frames of `precision.calibration`. Without that they are calibrated on the very frames
    that are judged, which is optimistic; the report says so. For a scenario with a network of g2p-en, the share of
    words whose phonemes do not change is shown, too. Nothing is simulated for this: `lstmsim simulate --check-numerics`
    shows that what is simulated computes the same fixed-point numbers, bit for bit.

    \b
    lstmsim accuracy scenario.yaml --steps
    lstmsim accuracy scenario.yaml --set precision.weight_scale=tensor
    lstmsim accuracy scenario.yaml --bits 4:12 --plot accuracy.png
    """
    widths = bits or (_PLOTTED_BITS if "plot" in files.paths else ())
    with options.progress("comparing with float64") as show:
        from lstmsim.report.renderings import text
        from lstmsim.studies.accuracy.report import accuracy_document
        from lstmsim.studies.accuracy.request import accuracy

        report = accuracy(**asked, bits=widths, progress=show)
    writers = {"plot": lambda path: lstmsim.plot_accuracy(report, path, look=files.look)}
    files.finish(report, writers, lambda: text(accuracy_document(report, steps)))


@options.command("import", ImportRequest)
def import_command(
    files: options.Outputs, file: str, out: str | None, name: str | None, licence: str | None, force: bool, **asked: Any
) -> None:
    """Turn the recurrent layers of a real network into a model file that scenarios can name.

    FILE is .onnx, .safetensors with PyTorch's names, .keras or .h5 (Keras, also weights only), or .pt, .jit, .pth,
    .ckpt, .bin (PyTorch: state dictionaries, checkpoints, whole modules, TorchScript). The weights go next to the
    model file, as .safetensors. Nothing in FILE is ever executed; of other files only the data files of an ONNX network
    are opened (speech.onnx.data), in its own folder. A network with several separate recurrent parts gives a file for
    each, numbered. A table says what becomes of every operator of an ONNX network, and how much of the work is left
    out. ONNX needs the extra: pip install 'lstmsim[onnx]', Keras 'lstmsim[keras]'.

    \b
    lstmsim import speech.onnx --out speech.yaml
    """
    from lstmsim.files.scenario.written import save_model, weights_path
    from lstmsim.importers.files import SUFFIXES
    from lstmsim.studies.importing import check_name, import_model, renamed, targets_of

    options.check_suffix("FILE", file, SUFFIXES)
    target = out if out is not None else _default_target(file)
    options.check_suffix("--out", target, [".yaml", ".yml"])
    check_name(name)
    with options.status(f"reading {file}"):
        models = import_model(file, **asked)
    targets = targets_of(target, len(models))
    weights = [weights_path(path) if each.network else None for each, path in zip(models, targets, strict=True)]
    read = [file, *dict.fromkeys(path for each in models for path in each.files)]
    _check_written(read, list(zip(targets, weights, strict=True)), force)
    for imported in models:
        _describe(imported)
    operators = models[0].operators
    for line in operators.lines() if operators is not None else ():
        click.echo(f"  {line}")
    warning = operators.warning() if operators is not None else ""
    if warning:
        options.remark(warning)
    for imported, path in zip(renamed(models, name), targets, strict=True):
        save_model(imported, path, licence=licence, force=force)
        click.echo(f"wrote {path}{f' and {weights_path(path)}' if imported.network else ''}")
    own = f"{shlex.quote(targets[0])} --chip column-npu-16k --steps {models[0].steps or 100}"
    click.echo(f"next: lstmsim simulate {own}{'' if models[0].steps else '  # 100 is an example'}")


def _default_target(file: str) -> str:
    """Name the model file for FILE; it ends in `-model` where the weights would otherwise take FILE's own name."""
    from lstmsim.files.scenario.written import weights_path

    stem = os.path.splitext(os.path.basename(file))[0]
    taken = os.path.realpath(weights_path(f"{stem}.yaml")) == os.path.realpath(file)
    return f"{stem}-model.yaml" if taken else f"{stem}.yaml"


def _check_written(read: list[str], pairs: list[tuple[str, str | None]], force: bool) -> None:
    """Raise `InputError` unless every model file and its weights can be written and replace nothing of `read`."""
    for path, weights in pairs:
        options.check_outputs({"--out": path, "weights": weights}, inputs=read)
    wanted = [each for pair in pairs for each in pair if each is not None]
    there = [each for each in wanted if os.path.lexists(each)]
    if there and not force:
        raise InputError([Mistake(f"--out {each}", "exists already; --force replaces it") for each in there])


def _describe(imported: ImportedModel) -> None:
    layers = (_layer(layer, node) for layer, node in zip(imported.model.layers, imported.nodes, strict=True))
    click.echo(f"{imported.model.name}: " + "; ".join(layers))
    for note in imported.notes:
        options.remark(f"note: {note}")


def _layer(layer: Layer, node: str) -> str:
    both = "bidirectional " if layer.bidirectional else "reverse " if layer.reverse else ""
    return f"{both}{layer.cell.name} of {layer.hidden} units over {layer.input} inputs ({node})"
