"""`lstmsim simulate`."""

from __future__ import annotations

import os
import shlex
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

from lstmsim.base.bounds import MAX_STEPS
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.keys import Key
from lstmsim.base.wording import show
from lstmsim.cli import options
from lstmsim.report.tables import folded
from lstmsim.studies.shared.request import RandomWeights
from lstmsim.studies.simulate.request import SimulateRequest

if TYPE_CHECKING:
    from lstmsim.analysis.explanations.explanation import Explanation
    from lstmsim.analysis.replay import Checked
    from lstmsim.analysis.replay import Outputs as Computed
    from lstmsim.report.document import Section
    from lstmsim.studies.serve.result import Serving
    from lstmsim.studies.simulate.run import Refused, Run

_SAVING = "lstmsim.studies.simulate.saving"


class _Shown:
    """What is simulated of a network's file, and what is shown of a run."""

    chip: Annotated[
        str | None,
        Key("If SCENARIO is a network's or a model's file: the chip, a preset's name or a file.", metavar="NAME"),
    ] = None
    steps: Annotated[
        int | None,
        Key("If SCENARIO is such a file: time steps.", follows="those of the file", low=1, high=MAX_STEPS, metavar="N"),
    ] = None
    device: Annotated[
        str | None,
        Key(
            "With --report: show whether the chip fits that FPGA. With --explain: what changes cost there.",
            follows="with --explain, the one on which the chip was built",
            metavar="NAME",
        ),
    ] = None
    serving: Annotated[bool, Key("Show rates, latencies with intervals, queues; by tenant.")] = False
    jobs: Annotated[bool, Key("Show a row for every job, even of requests or of more than 40 jobs.")] = False
    explain: Annotated[
        bool,
        Key(
            "Show after the answer why the chip is not busy all the time, which changes and pairs of changes would "
            "help, the slowest requests, and the critical path."
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
    options.json_output("the report"),
    options.trace_output(
        "Write the trace of the run: .json, .json.gz, .pftrace (Perfetto), .csv, .csv.gz, .kanata (Konata), .fst or "
        ".vcd (with both come views for GTKWave, .gtkw, and Surfer, .sucl, unless they are there)."
    ),
    options.picture_output("timeline", "Draw the run over time"),
    options.picture_output(
        "roofline",
        "Draw how fast each layer was, below the peak of the chip and its memory's rate, with the numbers next to it "
        "as .csv",
        options.numbers_beside,
    ),
    options.Output("report", "Write a page with everything about the run: .html.", (".html",)),
    options.Output(
        "outputs",
        "Execute the simulated run and write what each job computed: .safetensors, a tensor [steps, outputs] under its "
        "name; float64 unless the scenario has a precision.",
        (".safetensors",),
    ),
    options.Output("program", "Keep the lowered program, for `lstmsim program`: .npz.", (".npz",)),
)


@options.command("simulate", *(SimulateRequest, _Shown, *_OUTPUTS), windowed=("trace", "timeline", "report"))
def simulate_command(
    files: options.Outputs, scenario: str, device: str | None, random_weights: int | None, **asked: Any
) -> None:
    """Simulate the file SCENARIO and show how busy the chip was, why not busier, and when each job finished.

    \b
    lstmsim simulate scenario.yaml --timeline timeline.png
    lstmsim simulate scenario.yaml --set chip.cores.0.ep=16 --set jobs.0.steps=50
    lstmsim simulate scenario.yaml --check-numerics --random-weights 0
    lstmsim simulate scenario.yaml --outputs h.safetensors
    lstmsim simulate network.onnx --chip column-npu-16k --steps 100
    """
    source, notes = import_module("lstmsim.studies.importing").scenario_of(scenario, asked["chip"], asked["steps"])
    for text in notes:
        options.remark(text)
    if device is not None:
        _check_device(device, "report" in files.paths or asked["explain"])
    if random_weights is not None and not asked["check_numerics"] and "outputs" not in files.paths:
        text = "only with --check-numerics or --outputs: no other number depends on weights"
        raise InputError(Mistake("--random-weights", text))
    with options.status(f"simulating {os.path.basename(scenario)}"):
        from lstmsim.studies.simulate import run as study

        result = study.run(source, engine=asked["engine"], overrides=asked["overrides"], clock=asked["clock"])
        if "outputs" in files.paths:
            _check_outputs(result)
        if "outputs" in files.paths or asked["check_numerics"]:
            import_module("lstmsim.files.scenario.numbers").check_memory(result.scenario)
        if device is not None:
            import_module("lstmsim.studies.fit.request").fit(result.scenario, [device])
        _ = result.report  # it takes the time of the simulation
    shown = _Parts(result)
    if asked["check_numerics"]:
        with options.progress("executing the trace") as show:
            shown.checks = study.check_numerics(result, random_weights=random_weights, progress=show)
    if "outputs" in files.paths:
        with options.progress("executing the trace") as show:
            checks = shown.checks
            shown.computed = study.outputs(result, random_weights=random_weights, checks=checks, progress=show)
    if asked["explain"]:
        with options.progress("simulating alternatives") as show:
            shown.reasons = study.explain(result, device=device, progress=show)
    if asked["serving"]:
        shown.served = study.serving_or_refusal(result)
    writers = {
        "json": lambda path: options.write_json(path, shown.plain()),
        "timeline": lambda path: import_module(_SAVING).plot(files.cut(result.timeline), path, look=files.look),
        "roofline": lambda path: import_module("lstmsim.studies.simulate.roofline").plot_roofline(
            result, path, look=files.look
        ),
        "report": lambda path: shown.save_page(path, files, device),
        "outputs": shown.save_outputs,
        "program": lambda path: import_module("lstmsim.studies.program.run").save_program(result, path),
    }
    files.write(result, writers)
    files.show(lambda: shown.text(asked["jobs"], asked["glossary"]), result.report)
    for text in (*result.report.remarks, *_doubts(source, result)):
        options.remark(text)
    options.remark_uncounted(source, asked["overrides"])
    files.name()


def _doubts(source: Any, result: Run) -> Iterator[str]:
    """Say what a scenario may not mean: an order without effect, and a name that several entries have."""
    from lstmsim.files.yaml.source import read_document

    jobs = result.scenario.jobs
    if jobs[0].dispatch == "edf" and all(job.deadline is None for job in jobs):
        yield "dispatch edf: no job has a `deadline`, so that jobs go in the order of their arrivals"
    # a pipe can be read only once
    entries = read_document(source).data["jobs"] if isinstance(source, str) and os.path.isfile(source) else []
    for name, count in Counter(each["name"] for each in entries if "name" in each).items():
        if count > 1:
            yield f"{count} entries of `jobs` have the name {show(name)}: the names of their jobs are made different"


def _check_outputs(result: Run) -> None:
    """Refuse outputs that no file could hold, before anything is executed."""
    from lstmsim.analysis.replay import check_names, check_size

    check_size(result.scenario)
    check_names(result.scenario)


def _check_device(name: str, wanted: bool) -> None:
    """Refuse a device that is not known, before anything is run."""
    from lstmsim.studies.fit.device import device

    if not wanted:
        raise InputError(Mistake("--device", "only with --report or --explain; `lstmsim fit` shows it on its own"))
    device(name)


@dataclass
class _Parts:
    """A run, and what else was asked for."""

    result: Run
    checks: tuple[Checked, ...] | None = None
    computed: Computed | None = None
    reasons: Explanation | None = None
    served: Serving | Refused | None = None

    def save_outputs(self, path: str) -> None:
        """Write the outputs, and say which jobs have none."""
        from lstmsim.model.numerics.jobs import some_of

        computed: Any = self.computed
        import_module(_SAVING).save_outputs(computed, path)
        if computed.rejected:
            options.remark(f"rejected, without a tensor in {path}: {some_of(computed.rejected)}")

    def save_page(self, path: str, files: options.Outputs, device: str | None) -> None:
        """Write the page about the run."""
        import_module(_SAVING).save_report(
            self.result,
            path,
            trace_path=files.paths.get("trace"),
            command=shlex.join(["lstmsim", *sys.argv[1:]]),
            device=device,
            serving=self.served,
            explanation=self.reasons,
            window=files.window,
        )

    def _why(self) -> tuple[Section, ...]:
        if not self.reasons:
            return ()
        from lstmsim.analysis.explanations.text import document

        return document(self.reasons).sections

    def plain(self) -> dict[str, Any]:
        """Everything as plain data."""
        content = self.result.to_dict()
        if self.checks is not None:
            from lstmsim.analysis.replay import checks_json

            content["numerics"] = checks_json(self.checks)
        for key, part in {"serving": self.served, "explanation": self.reasons}.items():
            if part is not None:
                content[key] = part.to_dict()
        return content

    def text(self, jobs: bool, glossary: bool) -> str:
        """The report and what else was asked for; reasons stand behind the answer."""
        from lstmsim.analysis.report_text import report_text

        misfit = folded("" if self.reasons is None else self.reasons.misfit)
        parts = [*filter(None, ["\n".join(misfit)]), report_text(self.result.report, jobs, self._why())]
        if self.checks is not None:
            from lstmsim.analysis.replay import checks_document
            from lstmsim.report.renderings import text as rendered

            scenario = self.result.scenario
            rejected = len(scenario.jobs) - len(self.checks)
            parts.append(rendered(checks_document(self.checks, scenario.precision, rejected)))
        text = "\n\n".join([*parts, *([] if self.served is None else [self.served.to_text()])])
        if not glossary:
            return text
        from lstmsim.analysis.explanations.text import glossary as words

        return f"{text}\n\n{words(text, self.result.report.words)}"
