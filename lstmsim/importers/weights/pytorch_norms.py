"""Weights that a file holds in parts: weight normalisation, spectral normalisation, pruning, weight drop.

PyTorch computes such a weight anew before each use. Here it is computed once, in double precision, by the same formula.
Sources: torch/nn/utils/weight_norm.py, spectral_norm.py, parametrizations.py, prune.py; fastai's WeightDropout.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial

import numpy as np

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import listed, show
from lstmsim.importers.weights.tensors import FLOAT_BYTES, Stored, shape_text
from lstmsim.model.numerics.weights import Floats

__all__ = ["in_parts", "whole_weights"]

_BASE = r"(?:weight_(?:ih|hh|hr)|bias_(?:ih|hh))(?:_l\d{1,6}(?:_reverse)?)?"
_SUFFIXED = re.compile(rf"(?s)(.*?[./]|)({_BASE})_([A-Za-z]\w*)")
_PARAMETRISED = re.compile(rf"(?s)(.*?[./]|)parametrizations[./]({_BASE})[./](.+)")
_Make = Callable[[list[Stored]], Floats]


def in_parts(name: str) -> bool:
    """Say whether a tensor of this name is a part of a recurrent weight.

    >>> [in_parts(name) for name in ("a.weight_hh_l0_g", "parametrizations.weight_hh_l0.original0", "weight_hh_l0")]
    [True, True, False]
    """
    return _parted(name) is not None


def _parted(name: str) -> tuple[str, str] | None:
    """The weight's name and the part's name, if a tensor of this name is a part of a weight."""
    match = _PARAMETRISED.fullmatch(name)
    if match is None:
        match = _SUFFIXED.fullmatch(name)
        # `weight_hh_l0_reverse` is a weight of its own.
        if match is None or match[3] == "reverse" or re.fullmatch(r"l\d{1,6}(_reverse)?", match[3]):
            return None
    return match[1] + match[2], match[3]


def whole_weights(tensors: Mapping[str, Stored]) -> dict[str, Stored]:
    """Replace parts of weights by the weights that they make; all other tensors stay.

    `InputError` if it is not known how parts make a weight.

    >>> g, v = np.array([[10.0]]), np.array([[3.0, 4.0]])
    >>> parts = {"weight_hh_g": Stored("F64", (1, 1), lambda: g), "weight_hh_v": Stored("F64", (1, 2), lambda: v)}
    >>> whole_weights(parts)["weight_hh"].read().tolist()
    [[6.0, 8.0]]
    """
    parts: dict[str, dict[str, str]] = {}
    for name in tensors:
        parted = _parted(name)
        if parted is not None:
            parts.setdefault(parted[0], {})[parted[1]] = name
    whole = {name: stored for name, stored in tensors.items() if _parted(name) is None}
    mistakes = []
    for weight, names in parts.items():
        made = _RULES.get(frozenset(names))
        if made is None:
            text = (
                f"is made of {_some(names.values())} in a way that is not known here: remove the parametrisation first"
            )
            mistakes.append(Mistake(show(weight), text))
            continue
        order, make, shaped = made
        stored = [tensors[names[part]] for part in order]
        target = _target(weight, whole) if order == ("raw",) else weight
        kind = stored[shaped].kind
        if any(each.kind not in FLOAT_BYTES for each in stored):
            mistakes.append(Mistake(show(weight), f"is made of {_some(names.values())}, which hold no weights"))
            continue
        whole[target] = Stored(kind, stored[shaped].shape, partial(_read, weight, make, stored, kind))
    if mistakes:
        raise InputError(mistakes)
    return whole


def _some(names: Iterable[str]) -> str:
    return listed([show(each) for each in list(names)[:4]], "and")


def _target(weight: str, whole: Mapping[str, Stored]) -> str:
    """The name of a raw weight in use: fastai keeps it one module deeper than the raw weight."""
    prefix, dot, own = weight.rpartition(".")
    deeper = f"{prefix}{dot}module.{own}"
    return deeper if deeper in whole else weight


def _read(weight: str, make: _Make, stored: list[Stored], kind: str) -> Floats:
    with np.errstate(all="ignore"):
        try:
            whole = make([Stored(each.kind, each.shape, partial(_wide, each)) for each in stored])
        except ValueError:
            shapes = listed([shape_text(each.shape) for each in stored], "and")
            raise InputError(f"is made of tensors of shapes {shapes}, which do not fit each other") from None
        return whole if kind == "F64" else whole.astype(np.float32)


def _wide(stored: Stored) -> Floats:
    return stored.read().reshape(stored.shape).astype(np.float64)


def _weight_norm(parts: list[Stored]) -> Floats:
    """g * v / |v|, with the norm over all dimensions that g does not have."""
    g, v = (each.read() for each in parts)
    if v.ndim != 2 or g.shape not in ((), (1, 1), (len(v), 1), (1, v.shape[1])):
        raise ValueError
    axis = None if g.ndim == 0 else 1 if g.shape == (len(v), 1) else 0
    norm = np.sqrt(np.sum(v * v, axis=axis, keepdims=axis is not None))
    whole: Floats = v * (g / norm)
    return whole


def _spectral_norm(parts: list[Stored]) -> Floats:
    """W / sigma, where sigma = u W v with the vectors u and v that training left."""
    w, u, v = (each.read() for each in parts)
    if w.ndim != 2 or u.ndim != 1 or v.ndim != 1:
        raise ValueError
    matrix = w if u.shape == w.shape[:1] else w.T
    whole: Floats = w / (u @ (matrix @ v))
    return whole


def _pruned(parts: list[Stored]) -> Floats:
    w, mask = (each.read() for each in parts)
    if w.shape != mask.shape:
        raise ValueError
    whole: Floats = w * mask
    return whole


def _same(parts: list[Stored]) -> Floats:
    return parts[0].read()


#: The names of the parts -> their order, the function that makes the weight, and which part has the weight's shape.
_RULES: Mapping[frozenset[str], tuple[tuple[str, ...], _Make, int]] = {
    frozenset(order): (order, make, shaped)
    for order, make, shaped in (
        (("g", "v"), _weight_norm, 1),
        (("original0", "original1"), _weight_norm, 1),
        (("orig", "u", "v"), _spectral_norm, 0),
        (("original", "0._u", "0._v"), _spectral_norm, 0),
        (("orig", "mask"), _pruned, 0),
        (("raw",), _same, 0),
    )
}
