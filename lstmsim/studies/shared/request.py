"""Requests: frozen classes whose fields, with their keys, are the one declaration of a study's arguments and options.

From them follow the check of Python arguments (`takes`), the options of commands (`lstmsim/cli/options.py`), the
pages of commands and the JSON schema (`lstmsim list --json-schema`). No module of requests imports numpy, because help
texts need it.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial, wraps
from json import dumps
from numbers import Integral, Real
from os import PathLike, fspath
from sys import modules
from textwrap import indent
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NewType,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from lstmsim.base.bounds import MAX_SIZE
from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.base.keys import NOT_FINITE, Described, Key, keys_of, unwrapped
from lstmsim.base.wording import must_be, show

if TYPE_CHECKING:
    from lstmsim.model.scenario import Chip, Scenario
else:
    # who takes a value that is no path says what is wrong with it
    Chip, Scenario = NewType("Chip", object), NewType("Scenario", object)

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

Path = str | PathLike[str]
Source = Annotated[
    Scenario | Path | Mapping[str, Any],
    Key("File of the scenario; in Python also its keys as a mapping, or a Scenario."),
]
Overrides = Annotated[
    Sequence[str] | Mapping[str, Any],
    Key(
        "Change a value of the scenario, like chip.cores.0.ep=16.", flag="--set", metavar="PATH=VALUE", repeatable=True
    ),
]
ChipSource = Annotated[Path | Chip, Key("Name of a preset, or file of a chip.", metavar="CHIP")]
ChipOverrides = Annotated[
    Sequence[str] | Mapping[str, Any],
    Key(
        "Change a value of the chip, like frequency_mhz=2000.", flag="--chip-set", metavar="PATH=VALUE", repeatable=True
    ),
]
Engine = Annotated[str, Key("Engine that simulates; both give the same numbers.", choices=("fast", "reference"))]
Progress = Annotated[
    Callable[[int, int], None] | None, Key("Function that is called with the parts that are done, and their number.")
]
#: A whole number from 0 on that numbers are drawn with.
Seed = Annotated[int, Key("Seed of the numbers that are drawn.", low=0)]
RandomWeights = Annotated[
    int | None, Key("Draw weights for models that have none.", low=0, high=2**32 - 1, metavar="SEED")
]
Jobs = Annotated[
    int | None, Key("Number of processes.", low=1, high=1024, follows="one for each processor", metavar="N")
]


def share_in(text: str) -> float:
    """Read a share.

    >>> share_in("5%"), share_in("0.05")
    (0.05, 0.05)
    """
    match = re.fullmatch(r"(\d{1,3}(?:\.\d+)?|\.\d+)(\s*%)?", text.strip(), re.ASCII)
    share = float(match[1]) / (100 if match[2] else 1) if match else 0.0
    if not 0 < share < 1:
        raise ValueError(f"{text!r} is not a share above 0 and below 1, like 5% or 0.05")
    return share


StabilityShare = Annotated[
    float | None,
    Key(
        "Change the latencies and bandwidths that no source gives by this share, like 50%, lower and higher, one by "
        "one and together, and say which conclusions flip.",
        above=0,
        below=1,
        flag="--stability",
        metavar="SHARE",
        read=share_in,
    ),
]
#: In place of MHz or a file: the clock is that which the machine's model tells.
CLOCK_MODEL = "model"
Clock = Annotated[
    Path | None,
    Key(
        "Clock of the chip instead of its own: MHz, what a build wrote (build/clock.json), or `model`, the machine's "
        "model of the clock of its generated hardware.",
        follows="the chip's own",
        metavar="MHZ|FILE|model",
    ),
]
MostJobs = Annotated[
    int | None,
    Key(
        "Make jobs a table that the host writes, of up to so many jobs: other jobs need no other netlist.",
        low=1,
        high=256,
        metavar="N",
    ),
]
MostSteps = Annotated[
    int | None,
    Key("With --most-jobs: most steps of a job.", low=1, high=1 << 16, follows="those of the longest job", metavar="N"),
]
#: A size from 1 on.
Size = Annotated[int, Key(low=1, high=MAX_SIZE)]

#: Types by the words for them; others are called by their names.
_WORDS = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    NoneType: "None",
    Mapping: "a mapping",
    Callable: "a function",
}


def table_size(most_jobs: int | None, most_steps: int | None, scenario: Scenario) -> tuple[int, int] | None:
    """The most jobs and steps of a table of jobs that the host writes; None: jobs are constants.

    most_jobs, most_steps: what was asked for; steps alone are refused.
    scenario: its longest job says the steps that nobody asks for.
    """
    if most_jobs is None:
        refuse([Mistake("most_steps", "only with most_jobs")] if most_steps is not None else ())
        return None
    return most_jobs, most_steps or max(job.steps for job in scenario.jobs)


def takes(request: Callable[P, R]) -> Callable[[Callable[[R], T]], Callable[P, T]]:
    """Turn a function of a request into a function of the request's fields, which are checked by their keys.

    request: the class. A whole request may be given, too.

    >>> from lstmsim.base.records import record
    >>> @record
    ... class Ask:
    ...     requests: Annotated[int, Key("Number of requests.", low=1)] = 1
    >>> @takes(Ask)
    ... def doubled(request: Ask) -> int:
    ...     return 2 * request.requests
    >>> doubled(requests=4), doubled(Ask(3))
    (8, 6)
    >>> doubled(requests=0)
    Traceback (most recent call last):
    lstmsim.InputError: requests: must be at least 1, got 0
    """

    def decorate(function: Callable[[R], T]) -> Callable[P, T]:
        @wraps(function)
        def call(*values: P.args, **named: P.kwargs) -> T:
            whole = len(values) == 1 and isinstance(values[0], request) and not named  # type: ignore[arg-type]
            return function(_checked(values[0] if whole else request(*values, **named)))

        call.request = request  # type: ignore[attr-defined]
        given = inspect.signature(function).return_annotation
        call.__signature__ = inspect.signature(request).replace(return_annotation=given)  # type: ignore[attr-defined]
        return call

    return decorate


def listed_in(text: str) -> tuple[Any, ...]:
    """The words of a text with commas between them; a number is a whole number.

    >>> listed_in("1, 2,x")
    (1, 2, 'x')
    """
    words = [each.strip() for each in text.split(",")]
    return tuple(int(each) if each.lstrip("+-").isdecimal() and len(each) < 300 else each for each in words)


def _checked(request: Any) -> Any:
    """The request with tuples in place of lists; `InputError` with every mistake."""
    keys = keys_of(type(request))
    given = {name: getattr(request, name) for name in keys}
    given |= {name: assignments(given[name], name) for name in keys if keys[name].key.metavar == "PATH=VALUE"}
    made = {name: _as_tuple(value, keys[name].type) for name, value in given.items()}
    refuse(each for name, value in made.items() for each in _wrong(name, value, keys[name].type, keys[name].key))
    changed = {name: value for name, value in made.items() if value is not getattr(request, name)}
    return replace(request, **changed) if changed else request


def assignments(given: Any, name: str = "overrides") -> Any:
    """Give a mapping from paths to values as texts `PATH=VALUE`, and anything else as it is."""
    if not isinstance(given, Mapping):
        return given
    refuse(Mistake(name, f"must have paths as keys, got {show(path)}") for path in given if not isinstance(path, str))
    write = partial(dumps, ensure_ascii=False, default=lambda each: getattr(each, "tolist", lambda: str(each))())
    return tuple(f"{path}={write(value)}" for path, value in given.items())


def _as_tuple(value: Any, hint: Any) -> Any:
    """A list as a tuple, where a field holds several values."""
    lists = any(isinstance(get_origin(each), type) and _is_list(get_origin(each)) for each in _members(hint))
    listed = isinstance(value, Collection) and not isinstance(value, Mapping | str | bytes | range)
    return tuple(value) if lists and listed else value


def names_of(given: Path | Sequence[Path]) -> tuple[str, ...]:
    """The names where one may be given alone."""
    return tuple(fspath(each) for each in ((given,) if isinstance(given, str | PathLike) else given))


def told_apart(names: Sequence[str]) -> list[str]:
    """The names once each: later ones of equal names get a number.

    >>> told_apart(["c", "d", "c"])
    ['c', 'd', 'c (2)']
    """
    seen: Counter[str] = Counter()
    names_once = []
    for name in names:
        seen[name] += 1
        names_once.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return names_once


def wrong_value(name: str, value: Any, hint: Any) -> list[Mistake]:
    """Say what is wrong with an argument, or with the entries of a list, by its type and the key in it.

    >>> wrong_value("chips", ["a", 5], Sequence[str])
    [Mistake(location='chips.1', sentence='must be text, got 5')]
    """
    return _wrong(name, value, *unwrapped(hint))


def _wrong(name: str, value: Any, kind: Any, key: Key | None) -> list[Mistake]:
    for each in _members(kind):
        outer, parts = get_origin(each) or each, get_args(each)
        if parts and isinstance(outer, type) and _is_list(outer) and _is(value, outer):
            if outer is tuple and ... not in parts and len(parts) != len(value):
                return [Mistake(name, f"must be {len(parts)} values, got {len(value)}")]
            hints: Sequence[Any] = parts if outer is tuple and ... not in parts else [parts[0]] * len(value)
            entries = (
                wrong_value(f"{name}.{index}", *pair) for index, pair in enumerate(zip(value, hints, strict=True))
            )
            return [wrong for some in entries for wrong in some]
    if _is(value, kind):
        sentence = "" if key is None or value is None else key.wrong(value)
        if sentence and key is not None and key.choices:
            return [Mistake(name, must_be(value, key.choices))]
        if sentence == NOT_FINITE and key is not None:
            sentence += key.range
        return [Mistake(name, f"{sentence}, got {value}")] if sentence else []
    bounds = key.range if key is not None and {int, float} & set(_members(kind)) else ""
    return [Mistake(name, f"must be {_words(kind)}{bounds}, got {_shown(value)}")]


def called(function: F) -> F:
    """Make a public function say which argument is of a wrong type.

    Arguments of plain types are looked at first; of those that take an object of lstmsim, the function knows where one
    comes from, and they are looked at where it fails. A function of a request checks its arguments itself; here its
    signature gets types without keys, and its documentation the meaning of each.
    """

    request = getattr(function, "request", None)
    plain: dict[str, Any] = {}

    @wraps(function)
    def call(*values: Any, **named: Any) -> Any:
        if request is None:
            if not plain:
                hints = {name: hint_of(function, name) for name in function.__annotations__}
                plain.update((name, hint) for name, hint in hints.items() if not _of_lstmsim(hint))
            refuse(_wrong_types(function, values, named, plain))
        try:
            return function(*values, **named)
        except (TypeError, ValueError, AttributeError) as error:
            mistakes = _wrong_types(function, values, named)
            if not mistakes:
                raise
            raise InputError(mistakes) from error

    call.__doc__, call.__signature__ = _documentation(function, request), _signature(function, request)  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


_Unquoted = type("_Unquoted", (str,), {"__repr__": str.__str__})


def _signature(function: Callable[..., Any], request: type | None) -> inspect.Signature:
    """The signature with types as people write them; a name that only a type checker imports stays."""
    given, keys = inspect.signature(function), {} if request is None else keys_of(request)
    made = []
    for name, each in given.parameters.items():
        hint = keys[name].type if name in keys else hint_of(function, name)
        typed = _typed(Source).join(str(each.annotation).split("Source")) if hint is object else _typed(hint)
        made.append(each.replace(annotation=_Unquoted(typed)))
    return given.replace(parameters=made, return_annotation=_Unquoted(given.return_annotation))


def _typed(hint: Any) -> str:
    """A type without keys, modules, and the types of a function's arguments."""
    hint = unwrapped(hint)[0]
    outer, parts = get_origin(hint) or hint, get_args(hint)
    if outer in (Union, UnionType):
        return " | ".join(map(_typed, parts))
    name: str = "None" if outer is NoneType else "..." if outer is ... else getattr(outer, "__name__", str(outer))
    return name if not parts or name in ("Callable", "PathLike") else f"{name}[{', '.join(map(_typed, parts))}]"


def _documentation(function: Callable[..., Any], request: type | None) -> str:
    """The docstring with arguments, result, errors and examples under the heads that tools know."""
    parts: dict[str, list[str]] = {"": [], "Args": [], "Returns": [], "Raises": [], "Examples": []}
    for block in inspect.cleandoc(function.__doc__ or "").split("\n\n"):
        heads = {"Args": r"[a-z_]\w*(, [a-z_]\w*)*: ", "Raises": r"`\w+Error`", "Examples": ">>>"}
        parts[next((head for head, text in heads.items() if re.match(text, block)), "")].append(block)
    parts["Args"] += [f"{name}: {sentence_of(each)}" for name, each in (keys_of(request) if request else {}).items()]
    result = hint_of(function, "return")
    said = [(inspect.getdoc(result) or "").split("\n\n")[0]] if _of_lstmsim(result) else []
    parts["Returns"] = [": ".join([str(function.__annotations__["return"]), *said])]
    parts["Raises"] = parts["Raises"] or ["`InputError` with every mistake."]
    texts = [f"{head}:\n{indent(chr(10).join(blocks), '    ')}" for head, blocks in parts.items() if head and blocks]
    return "\n\n".join([*parts[""], *texts])


def sentence_of(each: Described, more: str = "") -> str:
    """What a field is, and what stands for it if it is left out, in a sentence.

    more: stands before the default.
    """
    meaning, follows = f"{each.key.meaning.removesuffix('.')}{more}", each.key.follows
    if not follows:
        return f"{meaning}."
    return f"{meaning}. Default: {follows}." if ". " in meaning else f"{meaning}; default: {follows}."


def _wrong_types(
    function: Callable[..., Any],
    values: tuple[Any, ...],
    named: Mapping[str, Any],
    hints: Mapping[str, Any] | None = None,
) -> list[Mistake]:
    """The arguments whose values are not of the types that the function names; hints: only these, by name."""
    try:
        given = inspect.signature(function).bind(*values, **named).arguments
    except TypeError:
        return []
    known = {name: hint_of(function, name) for name in given} if hints is None else hints
    wrong = (wrong_value(name, value, known[name]) for name, value in given.items() if name in known)
    return [each for some in wrong for each in some]


def _of_lstmsim(hint: Any) -> bool:
    """Whether a type, or one of several, is a class of lstmsim."""
    return any(getattr(each, "__module__", "").startswith("lstmsim") for each in _members(unwrapped(hint)[0]))


def hint_of(function: Callable[..., Any], name: str) -> Any:
    """The annotation of an argument; `object` where it has none, or names what only a type checker imports."""
    one = type("One", (), {"__annotations__": {name: function.__annotations__.get(name, object)}})
    try:
        return get_type_hints(one, vars(modules[function.__module__]))[name]
    except (NameError, AttributeError, TypeError):
        return object


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _is(value: Any, hint: Any) -> bool:
    """Whether a value is of a type as annotations write it; entries of lists are looked at, too."""
    hint = unwrapped(hint)[0]
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_is(value, each) for each in parts)
    if origin is Literal:
        return isinstance(value, str | int) and value in parts
    if hint in (int, float):
        # a fraction holds no number of more bits
        large = hint is float and type(value) is int and value.bit_length() > 1023
        return not large and isinstance(value, Integral if hint is int else Real) and not isinstance(value, bool)
    kind: Any = origin or hint
    if hint is Any or not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        return True
    if _is_list(kind):
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, list | tuple | kind):
            return False
        entries: Any = value
        if kind is tuple and parts and ... not in parts:
            return len(parts) == len(entries) and all(map(_is, entries, parts))
        return not parts or all(_is(each, parts[0]) for each in entries)
    return isinstance(value, kind)


def _is_list(kind: type) -> bool:
    return kind is tuple or (issubclass(list, kind) and kind is not object)


def _words(hint: Any) -> str:
    """A type in words; None is not named where something else may stand there."""
    members = _members(hint)
    if len(members) > 1:
        return " or ".join(dict.fromkeys(_words(each) for each in members if each is not NoneType))
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    kind = get_origin(hint) or hint
    if kind in _WORDS:
        return _WORDS[kind]
    if isinstance(kind, type) and _is_list(kind):
        return "a list"
    name = getattr(kind, "__name__", str(kind))
    return "a path" if name == "PathLike" else f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def _shown(value: Any) -> str:
    simple = value is None or isinstance(value, str | Integral | Real | Mapping | list | tuple)
    return show(value) if simple else f"a value of type {type(value).__name__!r}"
