"""PyTorch modules in memory: their recurrent layers as models, without a file and without importing PyTorch here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lstmsim.errors import InputError, Mistake
from lstmsim.formats.bounded import placed
from lstmsim.formats.weights.imported import ImportedModel
from lstmsim.formats.weights.pytorch_models import import_groups
from lstmsim.formats.weights.pytorch_names import Fact, function_of
from lstmsim.formats.weights.pytorch_objects import QUANTISED, is_packed
from lstmsim.formats.weights.tensors import Stored, single_or_double
from lstmsim.formats.wording import show
from lstmsim.numerics.weights import Floats

__all__ = ["from_torch"]

_KINDS = {"torch.float64": "F64", "torch.float32": "F32", "torch.float16": "F16", "torch.bfloat16": "BF16"}


def from_torch(module: Any, *, name: str = "network", cell: str | None = None) -> list[ImportedModel]:
    """The recurrent layers of a PyTorch module as it is now: one model for each LSTM, GRU or RNN (or cell) in it.

    The numbers are copied; training goes on without changing them. Weight and spectral normalisation and pruning are
    computed as PyTorch does it in `eval()`. Which module feeds which is not known, so that each is a model of its own.

    module: anything with PyTorch's `state_dict()` and `named_modules()`; it is asked for nothing else.
    name: the name of the model, or the beginning of the names of several.
    cell: `rnn` (tanh) or `rnn-relu` for modules that have the shapes of an RNN and do not say which one they are.
    `InputError`: no recurrent layer, or one that cannot be simulated; every one of them is named.

    >>> import lstmsim
    >>> from types import SimpleNamespace
    >>> tensors = {"weight_ih_l0": np.ones((8, 3)), "weight_hh_l0": np.ones((8, 2))}
    >>> stand_in = SimpleNamespace(state_dict=lambda: tensors, named_modules=lambda: [])
    >>> lstmsim.from_torch(stand_in, name="speech")[0].model.layers[0].cell.name
    'lstm'
    """
    state = None if isinstance(module, type) else getattr(module, "state_dict", None)
    modules = getattr(module, "named_modules", None)
    values = state() if callable(state) else None
    if not isinstance(values, Mapping) or not callable(modules):
        kind = (
            f"the class {module.__name__}" if isinstance(module, type) else f"a value of type {type(module).__name__}"
        )
        raise InputError(
            Mistake("from_torch", f"expected a PyTorch module (with state_dict and named_modules), got {kind}")
        )
    if any(is_packed(key) for key in values):
        raise InputError(Mistake(name, QUANTISED))
    tensors = {str(key): _stored(value) for key, value in values.items() if _has_shape(value)}
    facts = {str(path): _fact(each) for path, each in modules()}
    try:
        return import_groups(tensors, name, cell=cell, facts=facts)
    except InputError as error:
        raise placed(error, name) from None


def _fact(module: Any) -> Fact:
    kind = type(module)
    words = (getattr(module, "mode", ""), getattr(module, "nonlinearity", ""))
    function = next((found for word in words if (found := function_of(word))), "")
    # A module with parametrised weights is of a class made for it, beside PyTorch's own.
    base = kind.__mro__[1] if kind.__module__ == "torch.nn.utils.parametrize" and len(kind.__mro__) > 1 else kind
    return Fact(f"{base.__module__}.{base.__qualname__}", function)


def _has_shape(value: Any) -> bool:
    """Whether a value is a tensor; PyTorch's lazy modules raise where the shape is not known yet."""
    try:
        return hasattr(value, "shape")
    except Exception:
        return False


def _stored(tensor: Any) -> Stored:
    """A tensor of PyTorch, of its device and kind, or an array."""
    shape = tuple(int(size) for size in tensor.shape)
    if not hasattr(tensor, "detach"):
        array = np.asarray(tensor)
        kind = f"F{8 * array.itemsize}" if array.dtype.kind == "f" else str(array.dtype)
        return Stored(kind, shape, lambda: single_or_double(array))
    kind = _KINDS.get(str(tensor.dtype), str(tensor.dtype))

    def read() -> Floats:
        try:
            own = tensor.detach().cpu()
            array = np.asarray((own if kind in ("F64", "F32") else own.float()).numpy())
        except Exception as error:
            # Tensors without numbers (device "meta", fake ones) raise what their kind likes to.
            where = f" on device {show(str(tensor.device))}" if hasattr(tensor, "device") else ""
            raise InputError(f"is a tensor{where} whose numbers cannot be read ({type(error).__name__})") from None
        return single_or_double(array)

    return Stored(kind, shape, read)
