"""`lstmsim simulate`."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING, Annotated, Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.keys import Key
from lstmsim.cli.options import (
    Output,
    Outputs,
    command,
    json_output,
    picture_output,
    progress,
    remark,
    status,
    trace_output,
    write_json,
)
from lstmsim.studies.shared.request import RandomWeights
from lstmsim.studies.simulate.request import SimulateRequest

if TYPE_CHECKING:
    from lstmsim.analysis.explanations.explanation import Explanation
    from lstmsim.analysis.replay import Checked
    from lstmsim.analysis.replay import Outputs as Computed
    from lstmsim.studies.serve.result import Serving
    from lstmsim.studies.simulate.run import Refused, Run


class _Shown:
    """What is shown of a run."""

    device: Annotated[str | None, Key("With --report: show whether the chip fits that FPGA.", metavar="NAME")] = None
    serving: Annotated[bool, Key("Show rates, latencies with intervals, queues; by tenant.")] = False
    jobs: Annotated[bool, Key("Show a row for each job, also of many (requests, more than 40 jobs).")] = False
    explain: Annotated[
        bool,
        Key(
            "Show first why the chip is not busy all the time, which changes and pairs of changes would help, the "
            "slowest requests, and the critical path."
        ),
    ] = False
    glossary: Annotated[bool, Key("End with a sentence for each word of the report.")] = False
    check_numerics: Annotated[
        bool, Key("Execute the simulated run on the models' weights, and compare with the golden model.")
    ] = False
    random_weights: Annotated[
        RandomWeights, Key("With --check-numerics and --outputs: draw weights for models that have none.")
    ] = None


_OUTPUTS = (
    json_output("the report"),
    trace_output(
        "Write what happened: .json, .json.gz, .pftrace (Perfetto), .csv, .csv.gz, .kanata (Konata), .fst or .vcd "
        "(with both comes a GTKWave view, .gtkw, unless there is one)."
    ),
    picture_output("timeline", "Draw what happened"),
    Output("report", "Write a page with everything about the run: .html.", (".html",)),
    Output(
        "outputs",
        "Execute the simulated run and write what each job computed: .safetensors, a tensor [steps, outputs] under its "
        "name; float64 unless the scenario has a precision.",
        (".safetensors",),
    ),
    Output("program", "Keep the lowered program, for `lstmsim program`: .npz.", (".npz",)),
)


@command(
    "simulate",
    "Simulate a scenario: how busy is the chip, and why not busier?",
    *(SimulateRequest, _Shown, *_OUTPUTS),
    windowed=("trace", "timeline", "report"),
)
def simulate_command(
    files: Outputs, scenario: str, device: str | None, random_weights: int | None, **asked: Any
) -> None:
    """Simulate the file SCENARIO and show how busy the chip was, why not busier, and when each job finished.

    \b
    lstmsim simulate scenario.yaml --timeline timeline.png
    lstmsim simulate scenario.yaml --set chip.cores.0.ep=16 --set jobs.0.steps=50
    lstmsim simulate scenario.yaml --check-numerics --random-weights 0
    lstmsim simulate scenario.yaml --outputs h.safetensors
    """
    if device is not None:
        _check_device(device, "report" in files.paths)
    if random_weights is not None and not asked["check_numerics"] and "outputs" not in files.paths:
        text = "only with --check-numerics or --outputs: no other number depends on weights"
        raise InputError(Mistake("--random-weights", text))
    with status(f"simulating {os.path.basename(scenario)}"):
        from lstmsim.studies.simulate.run import run

        result = run(scenario, engine=asked["engine"], overrides=asked["overrides"])
        if "outputs" in files.paths:
            _check_outputs(result)
        _ = result.report  # it takes the time of the simulation
    checks = _checked(result, random_weights) if asked["check_numerics"] else None
    computed = _computed(result, random_weights, checks) if "outputs" in files.paths else None
    reasons = _explanation(result) if asked["explain"] else None
    served = _served(result) if asked["serving"] else None
    files.write(
        result,
        {
            "json": lambda path: write_json(path, _plain(result, checks, served, reasons)),
            "timeline": lambda path: _plot(files, result, path),
            "report": lambda path: _page(files, result, reasons, path, device, served),
            "outputs": lambda path: _save_outputs(computed, path),
            "program": lambda path: _save_program(result, path),
        },
    )
    files.show(lambda: _text(result, checks, reasons, served, asked["jobs"], asked["glossary"]))
    for text in result.report.remarks:
        remark(text)
    files.name()


def _checked(result: Run, random_weights: int | None) -> tuple[Checked, ...]:
    with progress("executing the trace") as show:
        from lstmsim.studies.simulate.run import check_numerics

        return check_numerics(result, random_weights=random_weights, progress=show)


def _check_outputs(result: Run) -> None:
    """Refuse outputs that no file could hold, before anything is executed."""
    from lstmsim.analysis.replay import check_names, check_size

    check_size(result.scenario)
    check_names(result.scenario)


def _computed(result: Run, random_weights: int | None, checks: tuple[Checked, ...] | None) -> Computed:
    with progress("executing the trace") as show:
        from lstmsim.studies.simulate.run import outputs

        return outputs(result, random_weights=random_weights, checks=checks, progress=show)


def _save_outputs(computed: Computed | None, path: str) -> None:
    """Write the outputs, and say which jobs have none."""
    from lstmsim.model.numerics.jobs import some_of
    from lstmsim.studies.simulate.saving import save_outputs

    assert computed is not None
    save_outputs(computed, path)
    if computed.turned_away:
        remark(f"rejected, without a tensor in {path}: {some_of(computed.turned_away)}")


def _save_program(result: Run, path: str) -> None:
    from lstmsim.studies.program.run import save_program

    save_program(result, path)


def _plot(files: Outputs, result: Run, path: str) -> None:
    from lstmsim.studies.simulate.saving import plot

    plot(files.cut(result.timeline), path)


def _check_device(name: str, with_report: bool) -> None:
    """Refuse a device that is not known, before anything is run."""
    from lstmsim.studies.fit.device import device

    if not with_report:
        raise InputError(Mistake("--device", "only with --report; `lstmsim fit` shows it on its own"))
    device(name)


def _page(
    files: Outputs,
    result: Run,
    reasons: Explanation | None,
    path: str,
    device: str | None,
    served: Serving | Refused | None,
) -> None:
    """Write the page about the run, with what else was asked for."""
    from lstmsim.studies.simulate.saving import save_report

    sections = []
    if reasons is not None:
        from lstmsim.analysis.explanations.text import explain_text

        sections.append(("Why not 100 %", explain_text(reasons)))
    line = shlex.join(["lstmsim", *sys.argv[1:]])
    linked = files.paths.get("trace")
    save_report(
        result,
        path,
        trace_path=linked,
        command=line,
        device=device,
        serving=served,
        sections=sections,
        window=files.window,
    )


def _served(result: Run) -> Serving | Refused:
    from lstmsim.studies.simulate.run import serving_or_refusal

    return serving_or_refusal(result)


def _explanation(result: Run) -> Explanation:
    from lstmsim.studies.simulate.run import explain

    with progress("simulating alternatives") as show:
        return explain(result, progress=show)


def _plain(
    result: Run, checks: tuple[Checked, ...] | None, served: Serving | Refused | None, reasons: Explanation | None
) -> dict[str, Any]:
    content = result.to_dict()
    if checks is not None:
        from lstmsim.analysis.replay import checks_json

        content["numerics"] = checks_json(checks)
    if served is not None:
        content["serving"] = served.to_dict()
    if reasons is not None:
        content["explanation"] = reasons.to_dict()
    return content


def _text(
    result: Run,
    checks: tuple[Checked, ...] | None,
    reasons: Explanation | None,
    served: Serving | Refused | None,
    jobs: bool,
    glossary: bool,
) -> str:
    """The report and what else was asked for; reasons stand first."""
    from lstmsim.analysis.report_text import report_text

    parts = []
    if reasons is not None:
        from lstmsim.analysis.explanations.text import explain_text

        parts.append(explain_text(reasons))
    parts.append(report_text(result.report, jobs))
    if checks is not None:
        from lstmsim.analysis.replay import checks_document
        from lstmsim.report.renderings import text as rendered

        rejected = len(result.scenario.jobs) - len(checks)
        parts.append(rendered(checks_document(checks, result.scenario.precision, rejected)))
    if served is not None:
        parts.append(served.to_text())
    text = "\n\n".join(parts)
    if glossary:
        from lstmsim.analysis.explanations.text import glossary as words

        text += "\n\n" + words(text, result.report.words)
    return text
