"""Options that several commands have are declared once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from lstmsim.cli import fuse, gemm, sparse

PRODUCTS = {"fuse": fuse, "gemm": gemm, "sparse": sparse}


def declared(name: str) -> Iterator[str]:
    """The names of the options that a command's own file declares."""
    for node in ast.walk(ast.parse(Path(str(PRODUCTS[name].__file__)).read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "click.option":
            yield ast.literal_eval(node.args[0])


@pytest.mark.parametrize("name", PRODUCTS)
def test_what_commands_on_products_share_stands_in_one_place(name: str) -> None:
    options = {word for each in PRODUCTS[name].command.params for word in each.opts}
    shared = {"--chip", "--chip-set", "--set", "--seed", "--engine", "--json", "--trace", "--timeline"}
    assert shared <= options
    assert shared.isdisjoint(declared(name))


@pytest.mark.parametrize(("name", "chip"), [("fuse", "v100"), ("gemm", "epyc-7742"), ("sparse", "v100")])
def test_commands_keep_their_own_chip(name: str, chip: str) -> None:
    (own,) = (each for each in PRODUCTS[name].command.params if each.name == "chip")
    assert own.default == chip
