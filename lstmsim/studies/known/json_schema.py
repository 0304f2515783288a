"""JSON schema of requests and of the keys of files, read off the same keys as checks, help and documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, is_dataclass
from importlib import import_module
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from lstmsim.base.keys import Described, Entry, Key, keys_of, unwrapped
from lstmsim.machines.registry import KINDS, target_of
from lstmsim.studies.known.keys import ENTRIES, described_keys
from lstmsim.studies.shared.request import sentence_of

#: The requests by the names of their commands.
REQUESTS: Mapping[str, str] = {
    "simulate": "simulate.request.SimulateRequest",
    "compare": "compare.request.CompareRequest",
    "diff": "diff.request.DiffRequest",
    "validate": "validate.request.ValidateRequest",
    "accuracy": "accuracy.request.AccuracyRequest",
    "serve": "serve.request.ServeRequest",
    "saturate": "serve.request.SaturateRequest",
    "load-latency": "serve.request.LoadLatencyRequest",
    "fit": "fit.request.FitRequest",
    "sparse": "sparse.request.SparseRequest",
    "gemm": "gemm.request.GemmRequest",
    "fuse": "fuse.request.FusionRequest",
    "rtl": "rtl.request.RtlRequest",
    "search": "search.request.SearchRequest",
    "design": "design.request.DesignRequest",
    "sweep": "sweep.request.SweepRequest",
    "merge": "sweep.request.MergeRequest",
    "timeline": "simulate.request.TimelineRequest",
    "program": "simulate.request.ProgramRequest",
    "import": "importing.ImportRequest",
}
#: Keys of files at which the name or the file of a mapping may stand, too.
_BY_NAME = ("chip", "model")
_NAMES = {int: "integer", float: "number", str: "string", bool: "boolean", NoneType: "null"}
_SIZES = {"string": "Length", "array": "Items", "object": "Properties"}


def json_schema() -> dict[str, Any]:
    """Give a JSON schema whose definitions are the requests of studies and the mappings of files.

    >>> schema = json_schema()
    >>> schema["$defs"]["request gemm"]["properties"]["batch"]["minimum"]
    1
    >>> schema["$defs"]["chip column-npu"]["properties"]["frequency_mhz"]["type"]
    'number'
    """
    defs = {f"request {name}": _object(keys_of(_class(home))) for name, home in REQUESTS.items()}
    for place, entry, documents in ENTRIES:
        defs[place] = _object(described_keys(entry, documents))
    for kind in KINDS:
        target = target_of(kind)
        chip, core = _object(keys_of(target.chip)), _object(keys_of(target.core))
        chip["properties"]["cores"] = {"type": "array", "items": core}
        defs[f"chip {kind}"] = chip
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "lstmsim", "$defs": defs}


def _class(home: str) -> type:
    module, _, name = home.rpartition(".")
    found: type = getattr(import_module(f"lstmsim.studies.{module}"), name)
    return found


def _object(keys: Mapping[str, Described]) -> dict[str, Any]:
    """The schema of a mapping with these keys."""
    keys = {name: each for name, each in keys.items() if Callable not in each.kinds}
    required = [name for name, each in keys.items() if each.default is MISSING and not each.key.follows]
    properties = {name: _property(each) for name, each in keys.items()}
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _property(each: Described) -> dict[str, Any]:
    """The schema of a key's value, with its sentence and its default."""
    schema = _bounded(_typed(each.type, each.key), each.key)
    if each.name in _BY_NAME:
        schema = {"anyOf": [{"type": "string"}, schema]}
    if each.key.meaning:
        schema["description"] = sentence_of(each)
    if each.key.unit:
        schema["unit"] = each.key.unit
    if isinstance(each.default, str | int | float | list) or each.default in ((), None):
        schema["default"] = list(each.default) if isinstance(each.default, tuple) else each.default
    return schema


def _bounded(schema: dict[str, Any], key: Key | None) -> dict[str, Any]:
    """A schema, or each of its members, with the bounds of a key: of a number, of letters or of entries."""
    if key is None:
        return schema
    if "anyOf" in schema:
        return {**schema, "anyOf": [_bounded(each, key) for each in schema["anyOf"]]}
    kind = schema.get("type")
    if kind in ("integer", "number"):
        names = {"low": "minimum", "high": "maximum", "above": "exclusiveMinimum", "below": "exclusiveMaximum"}
    elif kind in _SIZES:
        names = {"low": f"min{_SIZES[kind]}", "high": f"max{_SIZES[kind]}"}
    else:
        return schema
    bounds = {word: getattr(key, name) for name, word in names.items() if getattr(key, name) is not None}
    return {**schema, **bounds, **({"enum": list(key.choices)} if key.choices and kind == "string" else {})}


def _typed(hint: Any, outer: Key | None = None) -> dict[str, Any]:
    """The schema of a type as annotations write it; of what no file can hold, nothing is said."""
    kind, key = unwrapped(hint)
    origin, parts = get_origin(kind) or kind, get_args(kind)
    if origin is Literal:
        return {"enum": list(parts)}
    if isinstance(origin, type) and origin in _NAMES:
        return _bounded({"type": _NAMES[origin]}, key)
    if isinstance(origin, type) and (is_dataclass(origin) or issubclass(origin, Entry)):
        inner = _object(keys_of(origin))
        return {"type": "object", "additionalProperties": inner} if outer and outer.named_by else inner
    if isinstance(origin, type) and issubclass(origin, Mapping | dict):
        return _bounded(
            {"type": "object", **({"additionalProperties": _typed(parts[1])} if len(parts) == 2 else {})}, key
        )
    if (isinstance(origin, type) and origin is not object and issubclass(list, origin)) or origin is tuple:
        return _bounded({"type": "array", **({"items": _typed(parts[0], outer)} if parts else {})}, key)
    members = [each for part in parts if (each := _typed(part, outer))] if origin in (Union, UnionType) else []
    return {"anyOf": members} if len(members) > 1 else members[0] if members else {}
