"""Options that several commands have."""

from __future__ import annotations

import click

__all__ = ["ENGINES", "engine_option"]

#: Named here too, because asking `lstmsim.engines` would import numpy for a help text.
ENGINES = ("fast", "reference")

engine_option = click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default="fast",
    show_default=True,
    help="Both give the same numbers.",
)
