"""`lstmsim merge`."""

from __future__ import annotations

import click

from lstmsim.cli.outputs import check_outputs, check_suffix, remark, status
from lstmsim.cli.sweep import draw, explain, plot_options, plot_outputs, store_outputs, table_outputs

__all__ = ["command"]


@click.command(name="merge", short_help="Join the shards of a sweep.")
@click.argument("out", type=click.Path(), metavar="OUT.sqlite")
@click.argument("inputs", type=click.Path(), metavar="IN.sqlite...", nargs=-1, required=True)
@plot_options
def command(
    out: str,
    inputs: tuple[str, ...],
    plot_path: str | None,
    plot_kind: str | None,
    plot_objectives: tuple[str, ...],
) -> None:
    """Join files that `lstmsim sweep --shard` wrote into OUT.sqlite, and write the table beside it, as .csv.

    All must come from the same sweep file, scenario and version. The table is that of a sweep without shards.

    \b
    lstmsim merge results/sweep.sqlite results/sweep-*-of-20.sqlite
    """
    from lstmsim.studies.sweep.run import SUFFIX, merge

    check_suffix("OUT", out, [SUFFIX])
    tables = table_outputs("OUT's table", out[: -len(SUFFIX)])
    pictures = plot_outputs(plot_path, plot_kind, plot_objectives, out[: -len(SUFFIX)])
    check_outputs(store_outputs("OUT", out) | tables | pictures, inputs=inputs)
    with status(f"merging {len(inputs)} files"):
        merged = merge(out, inputs)
    click.echo(merged.to_text())
    for path in [merged.path, *merged.tables]:
        remark(f"wrote {path}")
    explain(merged.path, out, whole=merged.points == merged.total)
    for path in draw(merged.path, plot_path, plot_kind, plot_objectives):
        remark(f"wrote {path}")
