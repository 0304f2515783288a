"""Nobody outside a machine's folder asks which machine it is, nor for what only its description has.

`tests/test_architecture.py` finds machines that are named in words. The rules here find them in pieces: a name put
together, a kind taken apart, a property that only one machine's description has.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cache

import pytest

from lstmsim.base.keys import keys_of
from lstmsim.machines.registry import KINDS, target_of
from lstmsim.machines.target import COMMON
from tests.test_architecture import FILES, HOMES, MACHINES, docstrings, tree, walked

#: Where names of machines' descriptions are read outside their folders, and why.
PLACES = {"lstmsim.studies.search": "points have ep and vp of their own; cores are asked through `array_search`"}
#: Names of keys that are also names of functions of numpy and matplotlib.
NUMPY = {"accumulate", "divide", "grid"}
#: Methods that take a text apart.
TAKES_APART = {
    *("startswith", "endswith", "split", "rsplit", "partition", "rpartition", "removeprefix", "removesuffix"),
    *("find", "index", "count", "replace", "strip", "lstrip", "rstrip", "lower", "upper", "title", "casefold"),
}
#: What a chip or its machine is called where `.kind` of it is read.
CALLED = {"chip", "target", "machine", "change"}


def keys_below(description: type) -> Iterator[str]:
    """The names of all keys of a description, also of those inside its keys."""
    for name, each in keys_of(description).items():
        yield name
        if isinstance(each.kind, type) and is_dataclass(each.kind):
            yield from keys_below(each.kind)


def attributes_of_its_own(module: ast.Module) -> Iterator[str]:
    """The names of fields, methods and attributes that the classes of a module define."""
    for node in walked(module):
        if isinstance(node, ast.ClassDef):
            for each in node.body:
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                    yield each.target.id
                elif isinstance(each, ast.FunctionDef):
                    yield each.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


@cache
def words_of_machines() -> set[str]:
    """The names that only descriptions of machines have: the keys of all machines, without what others define too."""
    machines = [target_of(kind) for kind in KINDS]
    keys = {key for each in machines for part in (each.chip, each.core) for key in keys_below(part)}
    others = {
        word for name in FILES if not name.startswith((*HOMES, *PLACES)) for word in attributes_of_its_own(tree(name))
    }
    return keys - {*COMMON} - others - NUMPY


#: Pieces of kinds that are no words of their own: tables have rows and columns, FPGAs are devices, but nothing else is
#: an npu.
PIECES = {piece for kind in MACHINES for piece in kind.split("-")} - {"row", "column", "device"}


def called(node: ast.expr) -> str:
    """The last name of an expression: `chip` of `self.scenario.chip`."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def is_kind(node: ast.AST) -> bool:
    """Whether the expression is the kind of a chip or a machine."""
    return isinstance(node, ast.Attribute) and node.attr == "kind" and called(node.value) in CALLED


def is_class_name(node: ast.AST) -> bool:
    """Whether the expression is `type(x).__name__` or `x.__class__.__name__`."""
    if not (isinstance(node, ast.Attribute) and node.attr in ("__name__", "__qualname__", "__module__")):
        return False
    return called(node.value) == "__class__" or (isinstance(node.value, ast.Call) and called(node.value.func) == "type")


def part_of_a_kind(node: ast.AST) -> bool:
    """Whether the expression is a text with which a kind begins or ends."""
    text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
    return len(text) > 2 and any(kind.startswith(text) or kind.endswith(text) for kind in MACHINES)


#: Nodes that can be questions: what `words_read` and `taken_apart` know, and texts. Most nodes are others.
ASK = (ast.Attribute, ast.Call, ast.MatchClass, ast.Compare, ast.Subscript, ast.Match, ast.Constant)


def questions_of(module: ast.Module, own_words: bool = True) -> Iterator[tuple[int, str]]:
    """The line and the text of each question that a module asks about machines.

    own_words: whether names that only descriptions of machines have are questions.
    """
    skipped = docstrings(module)
    for node in walked(module):
        if not isinstance(node, ASK):
            continue
        line = getattr(node, "lineno", 0)
        if own_words:
            yield from ((line, word) for word in words_read(node) if word in words_of_machines())
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            pieces = [each for each in PIECES if node.value.strip("-") == each or node.value.endswith(f"-{each}")]
            yield from ((line, repr(node.value)) for _ in pieces)
        yield from ((line, text) for text in taken_apart(node))


def words_read(node: ast.AST) -> Iterator[str]:
    """The attributes that a node reads: as such, by `hasattr` and its like, in a pattern of `match`."""
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        yield node.attr
    elif isinstance(node, ast.Call) and called(node.func) in ("hasattr", "getattr", "attrgetter"):
        yield from (each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str))
    elif isinstance(node, ast.MatchClass):
        yield from node.kwd_attrs


def taken_apart(node: ast.AST) -> Iterator[str]:
    """Kinds of chips and names of classes that a node compares, looks up or takes apart."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        kinds = [each for each in sides if isinstance(each, ast.Attribute) and each.attr == "kind"]
        if any(is_kind(each) or is_class_name(each) for each in sides) or (kinds and any(map(part_of_a_kind, sides))):
            yield ast.unparse(node)
    elif isinstance(node, ast.Attribute) and node.attr in TAKES_APART:
        if is_class_name(node.value) or (isinstance(node.value, ast.Attribute) and node.value.attr == "kind"):
            yield ast.unparse(node)
    elif isinstance(node, ast.Subscript):
        if any(is_kind(each) or is_class_name(each) for each in (node.value, node.slice)):
            yield ast.unparse(node)
    elif isinstance(node, ast.Match) and (is_kind(node.subject) or is_class_name(node.subject)):
        yield ast.unparse(node.subject)


#: What looks like a question about a machine and is none, and why.
OTHER_KINDS = {
    "lstmsim.files.scenario.traces: entry.steps.kind == 'column'": "steps that stand in a column of a file",
    "lstmsim.importers.pytorch.names: fact.kind.startswith": "the class of an object in a checkpoint",
    "lstmsim.studies.sweep.expressions: type(node).__name__.lower": "a node of an expression's tree",
}


def test_nobody_asks_which_machine_it_is_or_for_what_only_one_machine_has() -> None:
    strangers = [name for name in FILES if not name.startswith(HOMES)]
    assert len(strangers) > 300
    asked = [
        (f"{name}: {text}", line)
        for name in strangers
        for line, text in questions_of(tree(name), own_words=not name.startswith(tuple(PLACES)))
    ]
    assert [each for each in asked if each[0] not in OTHER_KINDS] == []
    assert {text for text, _ in asked} == set(OTHER_KINDS), "an exception is not needed any more"


def test_every_place_that_may_read_own_words_does() -> None:
    for place in PLACES:
        assert any([*questions_of(tree(name))] for name in FILES if name.startswith(place)), place
    keys = {key for kind in KINDS for part in (target_of(kind).chip, target_of(kind).core) for key in keys_below(part)}
    assert keys >= NUMPY


VIOLATIONS = {
    "hasattr": "def f(core):\n    return 1 if hasattr(core, 'ep') else 0",
    "attribute": "def f(core):\n    return core.npe",
    "joined": "def f(kind):\n    return kind == '-'.join(('column', 'npu'))",
    "formatted": "def f(k, kind):\n    return kind == f'{k}-npu'",
    "start of a kind": "def f(thing):\n    return thing.kind.startswith('row')",
    "name of a class": "def f(chip):\n    return type(chip).__name__.startswith('Col')",
    "pattern": "def f(core):\n    match core:\n        case object(accumulator_banks=banks):\n            return banks",
    "lookup": "def f(chip, table):\n    return table[chip.kind]",
    "comparison": "def f(chip, other):\n    return chip.kind == other",
    "part": "def f(chip):\n    return chip.kind[:3]",
}


@pytest.mark.parametrize("code", VIOLATIONS.values(), ids=VIOLATIONS)
def test_the_rules_find_a_question_in_any_dress(code: str) -> None:
    assert [*questions_of(ast.parse(code))]


def test_the_rules_let_pass_what_asks_the_contract() -> None:
    code = "def f(chip, row):\n    return target_of(chip.kind), f'a {chip.kind}', row.kind == 'array', row.latency"
    assert [*questions_of(ast.parse(code))] == []
