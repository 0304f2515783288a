"""`lstmsim rtl`."""

from __future__ import annotations

from typing import Any

from lstmsim.base.errors import InputError, Mistake, ReplayError
from lstmsim.base.wording import listed
from lstmsim.cli.options import Output, Outputs, command, json_output, picture_output, remark, status
from lstmsim.studies.rtl.request import RtlRequest


@command(
    "rtl",
    RtlRequest,
    Output("vcd", "With --verify: write the signals of the RTL, and lstmsim's with them: .vcd.", (".vcd",)),
    picture_output("timeline", "With --verify: draw both runs, one above the other"),
    json_output(),
    left_out=("vcd",),
)
def rtl_command(files: Outputs, scenario: str, folder: str, **asked: Any) -> None:
    """Write the chip of the file SCENARIO, with its jobs, as Verilog into a folder.

    With --verify the Verilog is simulated and compared with lstmsim: every issue, turn of the tail, admission, finish,
    stall reason, and all bits of every h. docs/rtl.md says what can be built, and what each file is.

    \b
    lstmsim rtl scenario.yaml --out npu --random-weights 0
    lstmsim rtl scenario.yaml --out npu --verify --timing-only
    lstmsim rtl scenario.yaml --out npu --verify --simulator verilator --vcd both.vcd
    """
    verify, synth = asked["verify"], asked["synth"]
    shown = [f"--{name}" for name in ("vcd", "timeline") if name in files.paths]
    if shown and not verify:
        raise InputError([Mistake(name, "only with --verify: without it no RTL is simulated") for name in shown])
    if not folder:
        raise InputError(Mistake("--out", "the name is empty"))
    from lstmsim.studies.rtl.picture import plot_rtl
    from lstmsim.studies.rtl.run import run_rtl, slow_words
    from lstmsim.studies.rtl.synthesis import synthesis_words
    from lstmsim.studies.shared.loading import load_scenario
    from lstmsim.studies.shared.request import table_size

    loaded = load_scenario(scenario, asked.pop("overrides"))
    table = table_size(asked["most_jobs"], asked["most_steps"], loaded)
    slow = slow_words(loaded, asked["simulator"], table) if verify and not asked["timing_only"] else ""
    counting = synthesis_words(loaded, synth, table) if synth and not asked["timing_only"] else ""
    for text in (slow, counting):
        if text:
            remark(text)
    doing = [
        "writing",
        *["simulating"] * verify,
        *["synthesizing"] * (synth is not None),
        *["building"] * asked["build"],
    ]
    with status(f"{listed(doing, 'and')} the RTL"):
        report = run_rtl(loaded, folder, vcd=files.paths.get("vcd"), **asked)
    for text in report.remarks:
        remark(text)
    remark(f"wrote {folder}")
    # the comparison has written the signals
    files.finish(report, {"timeline": lambda path: plot_rtl(report, path, look=files.look), "vcd": lambda path: None})
    if report.wrong:
        # all is written, for whoever looks for the reason; scripts see it by the exit code
        raise ReplayError(report.wrong)
