"""`lstmsim list`."""

from __future__ import annotations

import textwrap

import click

from lstmsim.cli.outputs import check_outputs, write_json
from lstmsim.studies.known.run import KINDS, list_known

__all__ = ["command"]

_WIDTH = 100
#: Widest column of names, where it is not as for most kinds.
_NAMES = {"keys": 46}


@click.command(name="list", short_help="Show models, chips, machines, devices, cells, graphs, policies, engines.")
@click.argument("kind", required=False, type=click.Choice(list(KINDS)))
@click.option("--json", "json_path", metavar="FILE", help="Write the list as JSON; - is standard output.")
def command(kind: str | None, json_path: str | None) -> None:
    """Show models, chips, machines, devices, cells, graphs, policies, engines, experiments, or only one KIND of them.

    Each has its source; a machine says what its cycles are exact against, and what is assumed. The KIND keys
    shows every key of a file with its meaning, bounds, default and source, and only if asked for.
    """
    from lstmsim.studies.shared.files_read import files_that_come_along

    check_outputs({"--json": json_path}, inputs=files_that_come_along())
    known = list_known(kind)
    if json_path is not None:
        write_json(json_path, known)
        if json_path == "-":
            return
    kinds = {each: rows for each, rows in known.items() if each in KINDS}
    click.echo("\n\n".join(_section(each, [(row["name"], row["source"]) for row in kinds[each]]) for each in kinds))


def _section(kind: str, rows: list[tuple[str, str]]) -> str:
    """A heading and one entry a line, its source wrapped beside the name."""
    if not rows:
        missing = "none here; they come with the source checkout" if kind == "experiments" else "none"
        return f"{kind.upper()}\n  {missing}"
    width = min(_NAMES.get(kind, 34), max(len(name) for name, _ in rows))
    lines = []
    for name, source in rows:
        indent = " " * (width + 4)
        wrapped = textwrap.wrap(source or "-", _WIDTH - len(indent), break_on_hyphens=False) or ["-"]
        lines.append(f"  {name.ljust(width)}  {wrapped[0]}")
        lines.extend(indent + line for line in wrapped[1:])
    return "\n".join([kind.upper(), *lines])
