"""PyTorch modules in memory: their recurrent layers as models, without a file and without importing PyTorch here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lstmsim.base.bounded import placed
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import show
from lstmsim.importers.weights.imported import ImportedModel
from lstmsim.importers.weights.pytorch_models import import_groups
from lstmsim.importers.weights.pytorch_names import Fact, function_of
from lstmsim.importers.weights.pytorch_objects import QUANTISED, is_packed
from lstmsim.importers.weights.tensors import Stored, single_or_double
from lstmsim.model.numerics.weights import Floats

__all__ = ["from_torch"]

_KINDS = {"torch.float64": "F64", "torch.float32": "F32", "torch.float16": "F16", "torch.bfloat16": "BF16"}


def from_torch(module: Any, *, name: str = "network", cell: str | None = None) -> list[ImportedModel]:
    """Take the recurrent layers out of a PyTorch module in memory: one model for each LSTM, GRU, RNN or cell of these.

    The numbers are copied; later training does not change them. Weight and spectral normalisation and pruning are
    computed as PyTorch does it in `eval()`. Which module feeds which is not known, so each module is a model of its
    own.

    module: anything with PyTorch's `state_dict()` and `named_modules()`; it is asked for nothing else.
    name: the name of the model, or the beginning of the names of several models.
    cell: `rnn` (tanh) or `rnn-relu`, the cell of a module that has the shapes of an RNN and does not say which RNN.

    `InputError` if there is no recurrent layer, or names every layer that cannot be simulated.

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
    function = next((named for word in words if (named := function_of(word))), "")
    # PyTorch makes a class of its own for each module with parametrised weights.
    base = kind.__mro__[1] if kind.__module__ == "torch.nn.utils.parametrize" and len(kind.__mro__) > 1 else kind
    return Fact(f"{base.__module__}.{base.__qualname__}", function)


def _has_shape(value: Any) -> bool:
    """Whether a value is a tensor; PyTorch's lazy modules raise if the shape is not known yet."""
    try:
        return hasattr(value, "shape")
    except Exception:
        return False


def _stored(tensor: Any) -> Stored:
    """A tensor of PyTorch on any device and of any kind, or an array, as a `Stored`."""
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
            # Tensors without numbers (on device "meta", or fake tensors) raise errors of any class.
            where = f" on device {show(str(tensor.device))}" if hasattr(tensor, "device") else ""
            raise InputError(f"is a tensor{where} whose numbers cannot be read ({type(error).__name__})") from None
        return single_or_double(array)

    return Stored(kind, shape, read)
