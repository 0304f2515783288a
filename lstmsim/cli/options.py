"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

__all__ = ["ENGINES", "chip_options", "engine_option", "seed_option", "setting_option"]

F = TypeVar("F", bound=Callable[..., Any])

#: Named here too, because asking `lstmsim.engines` would import numpy for a help text.
ENGINES = ("fast", "reference")

engine_option = click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default="fast",
    show_default=True,
    help="Both give the same numbers.",
)


def chip_options(default: str, example: str) -> Callable[[F], F]:
    """The chip of a command that needs no scenario, and what is changed of it: `chip` and `chip_overrides`.

    default: the chip if none is named.
    example: a change of it, like `partitions=8`.
    """
    chip = click.option(
        "--chip", default=default, show_default=True, metavar="CHIP", help="A preset's name or a chip's file."
    )
    changes = click.option(
        "--chip-set",
        "chip_overrides",
        metavar="PATH=VALUE",
        multiple=True,
        help=f"Change a value of the chip, like {example}; repeatable.",
    )
    return lambda function: chip(changes(function))


def setting_option(name: str, help: str) -> Callable[[F], F]:
    """Parameters of what a command does: `--set`.

    name: of the argument.
    help: what they are, a sentence without its end.
    """
    return click.option("--set", name, metavar="NAME=VALUE", multiple=True, help=f"{help}; repeatable.")


def seed_option(numbers: str) -> Callable[[F], F]:
    """The seed of drawn numbers: `seed`.

    numbers: which they are, a sentence.
    """
    return click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help=numbers)
