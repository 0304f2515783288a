"""JSON schemas of types and of mappings with keys, read off the same keys as checks, help and documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from lstmsim.base.keys import Described, Entry, Key, keys_of, unwrapped

Schema = dict[str, Any]
_NAMES = {int: "integer", float: "number", str: "string", bool: "boolean", NoneType: "null"}
#: Texts, of which each rule of a text takes one.
_TEXTS = ("name", "name.safetensors", "name.csv")
_SIZES = {"string": "Length", "array": "Items", "object": "Properties"}


@dataclass(frozen=True)
class Shapes:
    """The way in which schemas are made.

    sentence: what is said of a key.
    keys: the keys of a description or of an entry.
    instead: by the name of a key, what its schema is made of: the schema of its type gives another one.
    whole: gives the schema of a mapping what is not in any single key of it.
    """

    sentence: Callable[[Described], str]
    keys: Callable[[type], Mapping[str, Described]] = keys_of
    instead: Mapping[str, Callable[[Schema], Schema]] | None = None
    whole: Callable[[type, Schema], Schema] = lambda _, schema: schema

    def mapping(self, description: type) -> Schema:
        """The schema of a mapping with the keys of a description."""
        keys = {name: each for name, each in self.keys(description).items() if Callable not in each.kinds}
        required = [name for name, each in keys.items() if each.default is MISSING and not each.key.follows]
        schema = {
            "type": "object",
            "properties": {name: self.value(each) for name, each in keys.items()},
            **({"required": required} if required else {}),
            "additionalProperties": getattr(description, "any_keys", False),
        }
        return self.whole(description, schema)

    def value(self, each: Described) -> Schema:
        """The schema of a key's value, with its sentence and its default."""
        schema = _bounded(self._typed(each.type, each.key), each.key)
        if self.instead and each.name in self.instead:
            schema = self.instead[each.name](schema)
        if each.key.meaning:
            schema = {**schema, "description": self.sentence(each)}
        if each.key.unit:
            schema["unit"] = each.key.unit
        if isinstance(each.default, str | int | float | list) or each.default in ((), None):
            schema["default"] = list(each.default) if isinstance(each.default, tuple) else each.default
        return schema

    def _typed(self, hint: Any, outer: Key | None = None) -> Schema:
        """The schema of a type as annotations write it; of what no file can hold, nothing is said."""
        kind, key = unwrapped(hint)
        origin, parts = get_origin(kind) or kind, get_args(kind)
        if origin is Literal:
            return {"enum": list(parts)}
        if isinstance(origin, type) and origin in _NAMES:
            return _bounded({"type": _NAMES[origin]}, key)
        if isinstance(origin, type) and (is_dataclass(origin) or issubclass(origin, Entry)):
            inner = self.mapping(origin)
            return {"type": "object", "additionalProperties": inner} if outer and outer.named_by else inner
        if isinstance(origin, type) and issubclass(origin, Mapping | dict):
            values = {"additionalProperties": self._typed(parts[1])} if len(parts) == 2 else {}
            return _bounded({"type": "object", **values}, key)
        if origin is tuple and parts and parts[-1] is not Ellipsis:
            size = {"minItems": len(parts), "maxItems": len(parts)}
            return {"type": "array", "items": _bounded(self._typed(parts[0]), outer), **size}
        if (isinstance(origin, type) and origin is not object and issubclass(list, origin)) or origin is tuple:
            return _bounded({"type": "array", **({"items": self._typed(parts[0], outer)} if parts else {})}, key)
        members = [each for part in parts if (each := self._typed(part, outer))] if origin in (Union, UnionType) else []
        return {"anyOf": members} if len(members) > 1 else members[0] if members else {}


def _bounded(schema: Schema, key: Key | None) -> Schema:
    """A schema, or each of its members, with the bounds of a key: of a number, of letters or of entries."""
    if key is None:
        return schema
    if "anyOf" in schema:
        return {**schema, "anyOf": [_bounded(each, key) for each in schema["anyOf"]]}
    kind = schema.get("type")
    if kind in ("integer", "number"):
        names = {"low": "minimum", "high": "maximum", "above": "exclusiveMinimum", "below": "exclusiveMaximum"}
    elif kind in _SIZES and "minItems" not in schema:
        names = {"low": f"min{_SIZES[kind]}", "high": f"max{_SIZES[kind]}"}
    else:
        return schema
    bounds = {word: getattr(key, name) for name, word in names.items() if getattr(key, name) is not None}
    if kind == "string" and key.choices:
        bounds["enum"] = list(key.choices)
    elif kind == "string" and key.rule is not None:
        bounds["examples"] = [next(name for name in _TEXTS if not key.rule(name))]
    return {**schema, **bounds}


def example(schema: Schema) -> Any:
    """A value that a schema takes, and not the default where there is a choice.

    >>> example({"type": "integer", "minimum": 3}), example({"enum": ["table", "linear"], "default": "linear"})
    (3, 'table')
    """
    if "anyOf" in schema:
        own = {key: value for key, value in schema.items() if key == "default"}
        return example({**next(part for part in schema["anyOf"] if part.get("type") != "null"), **own})
    default = schema.get("default")
    match schema.get("type"):
        case "object" if "examples" in schema:
            return schema["examples"][0]
        case _ if "enum" in schema:
            return next((word for word in schema["enum"] if word != default), default)
        case "boolean":
            return not default
        case "integer" | "number":
            # 1 if that is possible: it is what most counts begin with
            low = max(schema.get("minimum", 1), schema.get("exclusiveMinimum", 0) + 1, 1)
            return default if type(default) in (int, float) and default >= low else low
        case "array":
            return [example(schema["items"])] * schema.get("minItems", 1)
        case "object":
            # of keys of which one is needed, the first
            names = [
                *schema.get("required", ()),
                *(name for part in schema.get("oneOf", ())[:1] for name in part["required"]),
            ]
            needed = {name: example(schema["properties"][name]) for name in names}
            values = schema.get("additionalProperties")
            return needed or ({"NAME": example(values)} if isinstance(values, dict) else {})
        case _:
            return schema.get("examples", _TEXTS)[0]
