"""`lstmsim compare` and `lstmsim search`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lstmsim
from lstmsim.base.errors import InputError, Mistake
from lstmsim.cli import options
from lstmsim.studies.compare.request import CompareRequest
from lstmsim.studies.search.request import SearchRequest, SeveralSizes

if TYPE_CHECKING:
    from lstmsim.studies.compare.result import Comparison


@options.command(
    "compare",
    CompareRequest,
    options.json_output(),
    options.report_output(),
    options.Output("csv", "Write a table, a row for each workload and chip; - is standard output."),
    options.picture_output("plot", "Draw bars, with their numbers next to them as .csv", options.numbers_beside),
)
def compare_command(files: options.Outputs, **asked: Any) -> None:
    """Simulate the jobs of the file SCENARIO on its own chip and on others: cycles, time, TOPS, utilization, and how
    many times as fast as the first chip each one is.

    Chips are named like in a scenario. `--set chip....` changes the scenario's own chip only. A chip that cannot run
    the jobs says why. Published figures are printed, never simulated.

    For jobs that come over time, latencies are compared (mean, p50, p95, p99, with intervals), because arrivals decide
    how long such a run takes.

    \b
    lstmsim compare scenario.yaml --chip column-npu-16k --chip mine.yaml
    lstmsim compare deepbench.yaml --each --published --chip brainwave-s10 --plot bars.png
    lstmsim compare scenario.yaml --base column-npu-16k --chip column-npu-4x16k --csv table.csv
    """
    if not asked["chips"] and not asked["published"]:
        raise InputError(Mistake("--chip", "expected at least one chip to compare with, or --published"))
    changed = [each for each in asked["overrides"] if each.strip().startswith("chip.")]
    if changed and asked["base"] is not None:
        text = f"changes the scenario's own chip, which --base {asked['base']} leaves out"
        raise InputError([Mistake(f"--set {each}", text) for each in changed])
    with options.progress("comparing") as show:
        from lstmsim.studies.compare.report import comparison_rows
        from lstmsim.studies.compare.run import compare

        comparison = compare(**asked, progress=show)
    writers = {
        "csv": lambda path: options.write_table(path, comparison_rows(comparison)),
        "plot": lambda path: lstmsim.plot_comparison(comparison, path, look=files.look),
    }
    files.finish(comparison, writers)
    options.remark_uncounted(asked["scenario"], asked["overrides"])
    if asked["published"] and not any(machine.published for machine in comparison.machines):
        options.remark("no published row has the cell, hidden, input, steps and batch of " + _what(comparison))


def _what(comparison: Comparison) -> str:
    if comparison.each:
        return "any of these models"
    return (
        "this job" if comparison.workloads[0].jobs == 1 else "several jobs together; --each compares each model alone"
    )


@options.command("search", SearchRequest, SeveralSizes, options.json_output())
def search_command(files: options.Outputs, npe: tuple[int, ...], **asked: Any) -> None:
    """Search the EP and VP with which N multipliers finish the jobs of the file SCENARIO in the fewest cycles.

    EP doubles from 1, VP = min(Hw, N // EP), and every pair is simulated; threads, latencies and all else stay as the
    scenario's chip has them. Several models are searched one by one, too, and the CAT-n with which every model has its
    best EP is named. A search that is stopped goes on, with --out, where it was.

    \b
    lstmsim search scenario.yaml --npe 65536
    lstmsim search scenario.yaml --npe 65536 --exhaustive --any-ep
    lstmsim search scenario.yaml --npe 65536 --exhaustive --out results
    lstmsim search scenario.yaml --npe 16384 --core 2 --json -
    lstmsim search scenario.yaml --npe 4096:65536
    """
    if asked["folder"] is not None:
        from lstmsim.studies.sweep.run import table_stem

        store = f"{table_stem(asked['folder'], None)}.sqlite"
        options.check_outputs({"--json": files.paths.get("json"), "--out's store": store}, kept=[store])
    with options.progress("searching") as show:
        from lstmsim.studies.search.run import search

        results = [search(**asked, npe=each, progress=show) for each in npe]
    if len(results) == 1:
        files.finish(results[0])
        return
    from lstmsim.report.renderings import text
    from lstmsim.report.results import stamped
    from lstmsim.studies.search.report import table_of

    every = {"schema": "lstmsim/searches/1", "searches": [each.to_dict() for each in results]}
    files.finish(
        results[0],
        {"json": lambda path: options.write_json(path, every)},
        lambda: text(stamped(table_of(results), results[0])),
    )
