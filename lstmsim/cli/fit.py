"""`lstmsim fit`."""

from __future__ import annotations

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
    from lstmsim.studies.fit.request import fit

    fits = fit(scenario, devices, with_energy=with_energy, overrides=overrides)
    if json_path is not None:
        write_json(json_path, fits.to_dict())
    if json_path != "-":
        click.echo(fits.to_text())
        if json_path is not None:
            remark(f"wrote {json_path}")
