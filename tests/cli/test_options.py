"""Options that several commands have are declared once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from lstmsim.cli import kernels
from lstmsim.cli.group import command_of


def declared() -> Iterator[str]:
    """The names of the options that the module of commands on products declares."""
    for node in ast.walk(ast.parse(Path(kernels.__file__).read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "click.option":
            yield ast.literal_eval(node.args[0])


@pytest.mark.parametrize("name", ["fuse", "gemm", "sparse"])
def test_what_commands_on_products_share_is_declared_once(name: str) -> None:
    options = {word for each in command_of(name).params for word in each.opts}
    shared = {"--chip", "--chip-set", "--set", "--seed", "--engine", "--json", "--trace", "--timeline"}
    assert shared <= options
    assert all(list(declared()).count(option) <= 1 for option in shared)


@pytest.mark.parametrize(("name", "chip"), [("fuse", "v100"), ("gemm", "epyc-7742"), ("sparse", "v100")])
def test_commands_keep_their_own_chip(name: str, chip: str) -> None:
    (own,) = (each for each in command_of(name).params if each.name == "chip")
    assert own.default == chip
