"""What an import leaves out of files without a graph of operators: tensors of no recurrent layer, Keras layers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from lstmsim.base.wording import listed, show
from lstmsim.importers.onnx.values import kinds_named
from lstmsim.importers.weights.operators import FOLDED, LEFT_OUT, SIMULATED, Operators, OperatorTable, percent
from lstmsim.model.model import Layer

__all__ = ["keras_table", "unread_note"]

_SHOWN = 4
#: Classes of Keras that hand values on, unchanged or in another arrangement.
_MOVING = kinds_named(
    "InputLayer Dropout SpatialDropout1D GaussianNoise GaussianDropout AlphaDropout Identity ActivityRegularization "
    "Reshape Permute Flatten"
)
#: Classes that compute, but multiply no matrices.
_IDLE = kinds_named(
    "Activation ReLU LeakyReLU PReLU ELU Softmax Masking Embedding BatchNormalization LayerNormalization "
    "GroupNormalization UnitNormalization Normalization Rescaling Concatenate Add Subtract Multiply Average Maximum "
    "Minimum MaxPooling1D MaxPooling2D AveragePooling1D AveragePooling2D GlobalMaxPooling1D GlobalMaxPooling2D "
    "GlobalAveragePooling1D GlobalAveragePooling2D RepeatVector ZeroPadding1D ZeroPadding2D Cropping1D UpSampling1D "
    "StringLookup IntegerLookup TextVectorization"
)


def unread_note(sizes: Mapping[str, int], used: Collection[str]) -> str | None:
    """Say what is left out of a file of tensors; None if nothing is left out.

    sizes: how many numbers each tensor has.
    used: the tensors of recurrent layers.

    >>> unread_note({"rnn.weight_hh_l0": 30, "head.weight": 10}, {"rnn.weight_hh_l0"})
    "1 of 2 tensors belongs to no recurrent layer and is left out: 'head.weight', 25.0 % of the numbers in the file"
    """
    rest = sorted((name for name in sizes if name not in used), key=lambda name: -sizes[name])
    total = sum(sizes.values())
    if not rest or not total:
        return None
    names = [show(name) for name in rest[:_SHOWN]]
    if len(rest) > _SHOWN:
        names.append(f"{len(rest) - _SHOWN} more")
    do = "belongs to no recurrent layer and is" if len(rest) == 1 else "belong to no recurrent layer and are"
    share = percent(sum(sizes[name] for name in rest) / total)
    counts = f"{len(rest)} of {len(sizes)} tensors"
    return f"{counts} {do} left out: {listed(names, 'and')}, {share} of the numbers in the file"


def keras_table(
    kinds: Sequence[tuple[str, str]], layers: Mapping[str, Layer], calls: Mapping[str, int] | None = None
) -> OperatorTable:
    """List what became of every layer of a Keras model.

    The multiply-accumulates of layers that are not simulated are not counted, because the file does not say how often
    such a layer runs.

    kinds: class and name of each layer, in order.
    layers: the simulated layers, by name.
    calls: how often one run of the model calls a simulated layer; the first call is simulated, others are left out.

    >>> from lstmsim.model.cells import cell
    >>> table = keras_table([("LSTM", "a"), ("Dense", "b")], {"a": Layer(cell("lstm"), 8, 4)})
    >>> table.unknown[0].reason
    'a Keras file does not say how often Dense runs'
    """
    members: dict[tuple[str, str], list[str]] = {}
    for kind, name in kinds:
        outcome = SIMULATED if name in layers else FOLDED if kind in _MOVING else LEFT_OUT
        members.setdefault((kind, outcome), []).append(name)
    groups = []
    for (kind, outcome), names in members.items():
        macs: int | None = 0
        if outcome == SIMULATED:
            macs = sum(layers[name].macs_per_step for name in names)
        elif outcome == LEFT_OUT and kind not in _IDLE:
            macs = None
        reason = f"a Keras file does not say how often {show(kind)[1:-1]} runs" if macs is None else ""
        groups.append(Operators(kind, outcome, len(names), macs, reason))
    more = {name: count - 1 for name, count in (calls or {}).items() if count > 1}
    for kind in dict.fromkeys(kind for kind, name in kinds if name in more):
        names = [name for each, name in kinds if each == kind and name in more]
        macs = sum(more[name] * layers[name].macs_per_step for name in names)
        groups.append(Operators(f"{kind} called again", LEFT_OUT, sum(more[name] for name in names), macs))
    return OperatorTable(tuple(groups), steps=1, assumed="calls of equally many steps" if more else "")
