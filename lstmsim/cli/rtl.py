"""`lstmsim rtl`."""

from __future__ import annotations

from typing import Any

import click

from lstmsim.base.errors import InputError, Mistake, ReplayError
from lstmsim.base.wording import listed
from lstmsim.cli.options import (
    check_outputs,
    check_suffix,
    engine_option,
    inputs_of,
    json_option,
    overrides_option,
    remark,
    status,
    write_json,
)

#: Named here too, because asking `lstmsim.studies.rtl` would import what a help text does not need.
SIMULATORS = ("icarus", "verilator")
FAMILIES = ("ecp5", "xilinx", "intel-alm")


@click.command(name="rtl", short_help="The chip as Verilog, proved equal to the simulation.")
@click.argument("scenario", type=click.Path())
@click.option("--out", "folder", metavar="DIR", required=True, help="The folder that gets the files.")
@click.option("--verify", is_flag=True, help="Simulate the Verilog and compare it: exit code 1 if it differs.")
@click.option(
    "--simulator",
    type=click.Choice(SIMULATORS),
    default="icarus",
    show_default=True,
    help="With --verify; verilator compiles long and runs fast.",
)
@click.option(
    "--deep/--no-deep",
    default=None,
    help="Compare adapted sums and states within the tail, too; left out: where the run is short.",
)
@click.option(
    "--synth",
    type=click.Choice(FAMILIES),
    help="Count what it takes of such an FPGA by Yosys, beside the numbers of `lstmsim fit`.",
)
@click.option("--timing-only", is_flag=True, help="Cycles only: no weights are needed, no numbers are computed.")
@click.option(
    "--random-weights",
    metavar="SEED",
    type=click.IntRange(0, 2**32 - 1),
    help="Draw weights for models that have none.",
)
@overrides_option
@click.option("--replace", is_flag=True, help="Also replace files in DIR that were changed since lstmsim wrote them.")
@click.option("--vcd", metavar="FILE", help="With --verify: signals of the RTL, and beside them lstmsim's: .vcd.")
@click.option("--timeline", metavar="FILE", help="With --verify: draw both, one above the other: .png, .svg, .pdf.")
@json_option()
@engine_option
def rtl_command(
    scenario: str, folder: str, vcd: str | None, timeline: str | None, json_path: str | None, **options: Any
) -> None:
    """Write the chip of the file SCENARIO, with its jobs, as Verilog into a folder.

    With --verify the Verilog is simulated and compared with lstmsim: every issue, turn of the tail, admission, finish,
    name of a cycle, and all bits of every h. docs/rtl.md says what can be built, and what each file is.

    \b
    lstmsim rtl scenario.yaml --out npu --random-weights 0
    lstmsim rtl scenario.yaml --out npu --verify --timing-only
    lstmsim rtl scenario.yaml --out npu --verify --simulator verilator --vcd both.vcd
    """
    outputs = {"--json": json_path, "--vcd": vcd, "--timeline": timeline}
    verify, synth = options["verify"], options["synth"] is not None
    if options["timing_only"]:
        _check_timing_only(options)
    _check(scenario, options["overrides"], folder, verify, outputs)
    from lstmsim.studies.rtl.run import run_rtl, slow_words
    from lstmsim.studies.rtl.synthesis import synthesis_words
    from lstmsim.studies.shared.loading import load_scenario

    loaded = load_scenario(scenario, options.pop("overrides"))
    slow = slow_words(loaded, options["simulator"]) if verify and not options["timing_only"] else ""
    if slow:
        remark(slow)
    counting = synthesis_words(loaded, options["synth"]) if synth else ""
    if counting:
        remark(counting)
    with status(f"{listed(['writing', *['simulating'] * verify, *['synthesizing'] * synth], 'and')} the RTL"):
        report = run_rtl(loaded, folder, vcd=vcd, **options)
    if timeline is not None:
        with status(f"drawing {timeline}"):
            from lstmsim.studies.rtl.picture import plot_rtl

            plot_rtl(report, timeline)
    if json_path is not None:
        write_json(json_path, report.to_dict())
    if json_path != "-":
        click.echo(report.to_text())
    for text in report.remarks:
        remark(text)
    remark(f"wrote {folder}")
    for path in (vcd, timeline, None if json_path == "-" else json_path):
        if path is not None:
            remark(f"wrote {path}")
    if report.wrong:
        # all is written, for whoever looks for the reason; scripts see it by the exit code
        raise ReplayError(report.wrong)


def _check(
    scenario: str, overrides: tuple[str, ...], folder: str, verify: bool, outputs: dict[str, str | None]
) -> None:
    """Refuse outputs that cannot be written, before anything is run."""
    from lstmsim.report.pictures.figures import SUFFIXES

    check_suffix("--vcd", outputs["--vcd"], (".vcd",))
    check_suffix("--timeline", outputs["--timeline"], SUFFIXES)
    only = [name for name in ("--vcd", "--timeline") if outputs[name] is not None and not verify]
    if only:
        raise InputError([Mistake(name, "only with --verify: without it no RTL is simulated") for name in only])
    if not folder:
        raise InputError(Mistake("--out", "the name is empty"))
    check_outputs(outputs, inputs=inputs_of(scenario, overrides))


def _check_timing_only(options: dict[str, Any]) -> None:
    """Refuse options that need numbers, by the names that the command has for them."""
    texts = {
        "random_weights": "not with --timing-only, which leaves numbers out",
        "deep": "not with --timing-only: without numbers there is nothing within the tail",
        "synth": "not with --timing-only: without numbers there is no datapath to count",
    }
    # a seed may be 0
    given = [key for key in texts if options[key] is not None and options[key] is not False]
    wrong = [Mistake(f"--{key.replace('_', '-')}", texts[key]) for key in given]
    if wrong:
        raise InputError(wrong)
