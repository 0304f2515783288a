"""`lstmsim fit`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from lstmsim.cli.outputs import check_outputs, inputs_of, remark, write_json

__all__ = ["command"]


@click.command(name="fit", short_help="Does a scenario's chip fit an FPGA, and what binds?")
@click.argument("scenario", type=click.Path())
@click.option(
    "--device", "devices", metavar="NAME", multiple=True, help="A known device or a device file; default: all known."
)
@click.option("--energy", "with_energy", is_flag=True, help="Show the energy of each job too, relative.")
@click.option(
    "--set", "overrides", metavar="PATH=VALUE", multiple=True, help="Change a value of the scenario; repeatable."
)
@click.option("--json", "json_path", metavar="FILE", help="Write the result as JSON; - is standard output.")
def command(
    scenario: str, devices: tuple[str, ...], with_energy: bool, overrides: tuple[str, ...], json_path: str | None
) -> None:
    """Say what the chip of the file SCENARIO needs of an FPGA, with the weights of its models on the chip.

    DSP blocks with the packing named and the multipliers behind the array, block RAM by capacity, bandwidth and
    ports, and logic as an estimate with its band; which of them binds. The last lines say on which devices the chip
    fits, on which it does not and why, and of which nobody can tell. Every number of a device has its source in its
    file.

    \b
    lstmsim fit scenario.yaml --device stratix-10-gx-2800
    lstmsim fit scenario.yaml --energy
    """
    check_outputs({"--json": json_path}, inputs=inputs_of(scenario, overrides, devices))
    from lstmsim.api.run import energy, fit, load_scenario
    from lstmsim.devices import text as texts
    from lstmsim.devices.summary import fit_summary
    from lstmsim.formats.tables.devices_file import published_on

    loaded = load_scenario(scenario, overrides)
    found = fit(loaded, devices)
    rows = [published_on(each.device) for each in found]
    spent = energy(loaded) if with_energy else ()
    content: dict[str, Any] = {
        "schema": "lstmsim/fits/1",
        "fits": [texts.fit_json(each, published) for each, published in zip(found, rows, strict=True)],
        "summary": fit_summary(found).json,
        "energy": [texts.energy_json(each) for each in spent],
    }
    parts = [texts.fit_text(each, published) for each, published in zip(found, rows, strict=True)]
    parts += [texts.energy_text(each) for each in spent]
    parts.append(fit_summary(found).text)
    _write(content, parts, json_path)


def _write(content: dict[str, Any], parts: Sequence[str], json_path: str | None) -> None:
    if json_path is not None:
        write_json(json_path, content)
    if json_path != "-":
        click.echo("\n\n".join(parts))
        if json_path is not None:
            remark(f"wrote {json_path}")
