"""The column-wise NPU as code that knows no machine sees it: files, lowering, changes worth a try.

The timing contract of the chip is docs/timing.md; `lstmsim.machines.column.passes` lowers one step of a pass.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from lstmsim.base.bounds import MAX_CONTEXTS
from lstmsim.base.errors import InputError, refuse
from lstmsim.base.keys import described
from lstmsim.machines.assembly import Parts, PerStep, Phases, assemble
from lstmsim.machines.change import OTHER_NUMBERS, Change, detail_of, halved, one_more_core
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu, Delta, Devices, Exchange, device_faults, with_vp
from lstmsim.machines.column.phases import model_phases, operations_per_step, own_units, split_refusal, spreads_over
from lstmsim.machines.column.plan import Plan, places
from lstmsim.machines.column.shape import ARRAY
from lstmsim.machines.column.subset import outside
from lstmsim.machines.target import Evidence, Fault, Fidelity, MemoryRate, StructuralModel, Target
from lstmsim.model.model import Model
from lstmsim.model.scenario import SPLITS, Job, claims_of, for_data
from lstmsim.program.program import Buffer, Core, Program

if TYPE_CHECKING:
    from lstmsim.machines.hardware import Hardware
    from lstmsim.model.numerics.arithmetic import Arithmetic
    from lstmsim.model.numerics.golden import Sender


#: Most inferences of a batch: a body has the operations of each.
MAX_BATCH = 64

#: Further keys that a mistake of a key may be due to.
_JUDGED_WITH = {"vp": ("ep", "npe"), "ep": ("tree_inputs", "cat"), "tree_inputs": ("npe",)}
#: Name of a change -> the fields of a core that it changes.
_OF_CORES: dict[str, Callable[[ColumnCore], dict[str, object]]] = {
    "one more thread": lambda core: {"threads": core.threads + 1},
    "ep doubled": lambda core: {"ep": 2 * core.ep, "vp": core.npe // (2 * core.ep)},
    "ep halved": lambda core: {"ep": core.ep // 2, "vp": core.npe // max(core.ep // 2, 1)},
    "tail twice as wide": lambda core: {"tail_width": 2 * core.tail_width},
    "one more bank": lambda core: {"accumulator_banks": core.accumulator_banks + 1},
    "latencies halved": lambda core: {"latency": replace(core.latency, **halved(core.latency))},
    "npe and vp doubled": lambda core: {"npe": 2 * core.npe, "vp": 2 * core.vp},
    "npe and ep doubled": lambda core: {"npe": 2 * core.npe, "ep": 2 * core.ep},
    "switches for free": lambda core: {"switch_cycles": 0},
}


def _around_cores(chip: ColumnNpu, jobs: Sequence[Job]) -> list[Change]:
    """Changes of the external memory, of the space for weights on the cores, and of the links between cores."""
    tried, jobs = [], tuple(jobs)
    if any(core.weight_kib is not None for core in chip.cores):
        pairs = [(core, {"weight_kib": core.weight_kib and 2 * core.weight_kib}) for core in chip.cores]
        cores = tuple(replace(core, weight_kib=more["weight_kib"]) for core, more in pairs)
        pairs = [(core, more) for core, more in pairs if core.weight_kib]
        tried.append(Change("room for weights doubled", detail_of(pairs), replace(chip, cores=cores), jobs))
        if chip.memory is not None:
            rate = chip.memory.gb_per_s
            faster = replace(chip, memory=replace(chip.memory, gb_per_s=2 * rate))
            tried.append(Change("memory twice as fast", f"gb_per_s {rate:g} -> {2 * rate:g}", faster, jobs))
    if any(job.settled(len(chip.cores)).split for job in jobs):
        for way in (chip.exchange, chip.devices):
            if way is None or (way is chip.devices and chip.device_count == 1):
                continue
            name = "exchange" if way is chip.exchange else "link"
            sooner, wider = replace(way, latency_cycles=-(-way.latency_cycles // 2)), replace(way, width=2 * way.width)
            detail = f"latency_cycles {way.latency_cycles} -> {sooner.latency_cycles}"
            tried.append(Change(f"{name} latency halved", detail, _with_way(chip, sooner), jobs))
            detail = f"width {way.width} -> {wider.width}"
            tried.append(Change(f"{name} twice as wide", detail, _with_way(chip, wider), jobs))
        whole = tuple(replace(job, split="") for job in jobs)
        tried.append(Change("no job split", "each on one core", chip, whole))
    return tried


def _with_way(chip: ColumnNpu, way: Exchange) -> ColumnNpu:
    return replace(chip, devices=way) if isinstance(way, Devices) else replace(chip, exchange=way)


def _thresholds(chip: ColumnNpu, jobs: Sequence[Job], how: str, factor: float) -> Change:
    """All thresholds of skipped columns times a factor."""

    def changed(core: ColumnCore) -> ColumnCore:
        own = core.delta
        return replace(core, delta=own and replace(own, x=factor * own.x, h=factor * own.h))

    cores = tuple(map(changed, chip.cores))
    changed_chip = replace(chip, cores=cores)
    return Change(f"thresholds {how}", "delta.x, delta.h", changed_chip, tuple(jobs), no_price=OTHER_NUMBERS)


def _on_cores(
    chip: ColumnNpu, jobs: Sequence[Job], name: str, change: Callable[[ColumnCore], dict[str, object]]
) -> Change:
    pairs = [(core, change(core)) for core in chip.cores]
    detail = detail_of(pairs, unreported=("latency", "npe"))
    try:
        cores = tuple(replace(core, **new) for core, new in pairs)  # type: ignore[arg-type]
        return Change(name, detail, replace(chip, cores=cores), tuple(jobs))
    except InputError as error:
        return Change(name, detail, None, tuple(jobs), error.mistakes[0].sentence)


def _phases(job: Job, core: ColumnCore) -> Phases:
    if core.delta is None:
        return model_phases(job.model, core, job.steps, job.batch)
    # not at the top: what few chips have must not delay the start of every command
    from lstmsim.machines.column.delta import delta_phases

    return delta_phases(job, core)


def _refuse_differences(chip: ColumnNpu, jobs: Sequence[Job]) -> None:
    """`InputError` if jobs ask for what cores with delta columns do not have."""
    if any(core.delta is not None for core in chip.cores):
        from lstmsim.machines.column.delta import mistakes_of_jobs

        refuse(mistakes_of_jobs(chip, jobs))


class _ColumnTarget(Target):
    """The column-wise NPU; in a file, `vp` left out is `npe // ep`."""

    kind: ClassVar[str] = "column-npu"
    title: ClassVar[str] = "column-wise NPU"
    chip: ClassVar[type] = ColumnNpu
    core: ClassVar[type] = ColumnCore
    together: ClassVar[frozenset[str]] = frozenset({"npe", "ep", "vp", "tree_inputs", "cat"})
    splits: ClassVar[tuple[str, ...]] = tuple(SPLITS)
    rounds: ClassVar[bool] = True
    ragged: ClassVar[bool] = True
    batches: ClassVar[bool] = True
    counts: ClassVar[tuple[str, ...]] = ("threads", "tail_width", "banks")
    fidelity: ClassVar[Fidelity] = Fidelity(
        exact=(
            "its own timing contract (docs/timing.md), cycle by cycle: both engines, a model in the tests that steps "
            "through every cycle, and recorded cases of an independent model",
            "numbers bit by bit: every trace can be executed on real weights",
        ),
        assumed=(
            "all latencies, widths of the tail and banks, for the patent gives none: chosen so that both of its stated "
            "orderings of (EP, VP) come out; no measured machine stands behind the cycles",
        ),
    )

    def core_of(self, entry: Mapping[str, Any]) -> ColumnCore | Fault:
        whole = dict(entry)
        sentence = with_vp(whole)
        if sentence:
            return Fault.at("ep", sentence, "npe")
        return described(ColumnCore, whole)

    def core_faults(self, core: ColumnCore) -> Sequence[Fault]:
        return tuple(Fault.at(key, text, *_JUDGED_WITH.get(key, ())) for key, text in core.mistakes())

    def faults_of_all(self, cores: Sequence[ColumnCore]) -> Sequence[str]:
        """A fault if the cores have more threads than engines keep apart."""
        threads = sum(core.threads for core in cores)
        return (f"must have at most {MAX_CONTEXTS} threads in all, got {threads}",) if threads > MAX_CONTEXTS else ()

    def chip_faults(self, entry: Mapping[str, Any], cores: Sequence[ColumnCore]) -> Sequence[Fault]:
        """Cores that cannot be shared out over the devices, and a memory of several devices."""
        devices = entry.get("devices")
        count = 1 if devices is None else devices.get("count", Devices().count)
        faults = device_faults(count, len(cores), entry.get("memory") is not None)
        return tuple(Fault.at(key, text) for key, text in faults)

    def without_effect(self, entry: Mapping[str, Any]) -> Sequence[Fault]:
        """A fault for an external memory of cores that hold all weights."""
        cores = entry.get("cores")
        rooms = [each for each in (cores if isinstance(cores, list) else []) if isinstance(each, dict)]
        if entry.get("memory") is None or not rooms or any(each.get("weight_kib") is not None for each in rooms):
            return ()
        return (Fault.at("memory", "has no effect: no core has weight_kib, so all weights stay on the chip"),)

    def weight_width(self, entry: Mapping[str, Any]) -> tuple[str, int] | None:
        """`weight_bits`, if a core has a memory for weights."""
        bits = entry.get("weight_bits")
        return ("weight_bits", bits) if entry.get("weight_kib") is not None and isinstance(bits, int) else None

    def with_weight_bits(self, chip: ColumnNpu, bits: int) -> ColumnNpu:
        if all(core.weight_kib is None for core in chip.cores):
            return chip
        return replace(chip, cores=tuple(replace(core, weight_bits=bits) for core in chip.cores))

    def job_faults(
        self, batch: int, split: str | None, threads: int | None = None, cores: int | None = None
    ) -> Sequence[Fault]:
        """Batches of at most `MAX_BATCH` inferences, of jobs on one core."""
        faults = [*super().job_faults(batch, split, threads, cores)]
        if batch > MAX_BATCH:
            faults.append(Fault.at("batch", f"must be at most {MAX_BATCH} on a {self.title}, got {batch}"))
        if batch > 1 and split:
            faults.append(Fault.at("batch", f"a job that is split ({split}) is one inference: leave out one of both"))
        return tuple(faults)

    def split_refusal(self, core: ColumnCore, model: Model, split: str, members: int) -> str | None:
        return split_refusal(model, core, split, members)

    def varies(self, chip: ColumnNpu) -> bool:
        """Not if a core has a memory for weights, or delta columns: jobs are checked together, or ask for numbers."""
        return all(core.weight_kib is None and core.delta is None for core in chip.cores)

    def reads_numbers(self, chip: ColumnNpu) -> bool:
        return any(core.delta is not None for core in chip.cores)

    def with_threshold(self, chip: ColumnNpu, threshold: float) -> ColumnNpu:
        cores = [replace(core, delta=replace(core.delta or Delta(), x=threshold, h=threshold)) for core in chip.cores]
        return replace(chip, cores=tuple(cores))

    def left_out(self, chip: ColumnNpu, jobs: Sequence[Job]) -> float | None:
        if not self.reads_numbers(chip):
            return None
        from lstmsim.machines.column.delta import left_out

        return left_out(chip, jobs)

    def senders(self, chip: ColumnNpu, job: Job, arithmetic: Sequence[Sequence[Arithmetic]]) -> Sequence[Sender]:
        core = chip.cores[job.allowed(len(chip.cores))[0]]
        if core.delta is None:
            return ()
        from lstmsim.machines.column.delta import rule_of
        from lstmsim.model.numerics.delta import last_sent

        return [each.step for each in last_sent(arithmetic, rule_of(core), by_step=job.model.layer_order == "step")]

    def lower(self, chip: ColumnNpu, jobs: Sequence[Job], *, templates: bool = False) -> Program:
        claims = claims_of([job.settled(len(chip.cores)) for job in jobs], len(chip.cores))
        _refuse_differences(chip, [each.job for each in claims.different])
        split = any(each.job.split for each in claims.different)
        plain = not split and all(core.weight_kib is None for core in chip.cores)
        check = partial(self.check_job, chip.cores) if plain else partial(self.check, chip)
        for each in claims.different:
            check(each.job)
        parts = Parts(
            self.per_step,
            _phases,
            lambda core: (Buffer("accumulator bank", core.accumulator_banks),),
            lambda kind, core: Core(kind, own_units(core), core.threads, ARRAY),
        )
        if plain:
            return assemble(chip.cores, claims, parts, templates=templates)
        plan = Plan(chip, [job for job, *_ in claims.jobs])
        return assemble(chip.cores, claims, parts, plan.footprint, lambda: plan.machine, templates=templates)

    def check(self, chip: ColumnNpu, job: Job) -> None:
        """`InputError` if no core that the job may use can run it, or if the job cannot be split in its way."""
        settled = job.settled(len(chip.cores))
        _refuse_differences(chip, [job])
        self.check_job(chip.cores, settled)
        places(chip, settled)

    def per_step(
        self, cores: Sequence[ColumnCore], model: Model, batch: int = 1, split: str = "", members: int = 1
    ) -> PerStep:
        instances = [0]
        if split and members > 1:
            core = cores[0]
            if split != "auto":
                only = operations_per_step(model.layers, core, split, members)
                return PerStep(only, only)
            over = spreads_over(model, core, members)
            instances += [operations_per_step(model.layers, core, "rows", some) for some in over]
        one = max(operations_per_step(model.layers, core, batch=batch) for core in cores)
        return PerStep(max(one, *instances), one + sum(instances))

    def evidence(
        self, chip: ColumnNpu, jobs: Sequence[Job], *, bits: bool, preset: str, changed: Collection[str]
    ) -> Evidence:
        """Generated RTL, whatever the sizes and latencies, inside what can be written as Verilog."""
        why = outside(chip, jobs)
        if why:
            data = f"; {for_data(jobs)}" if self.reads_numbers(chip) else ""
            compared = f"{Evidence.compared} (outside generated RTL{'; cycles depend on the data' if data else ''})"
            return Evidence(inside=f"outside generated RTL: {why[0]}{data}", compared=compared)
        what = "every cycle and bit equal to generated RTL" if bits else "every cycle equal to generated RTL"
        inside = "what docs/rtl.md, section 3, says can be built; bits in memories of at most 2^24 words only"
        compared = f"generated RTL, from the same contract{', bit by bit' if bits else ''}"
        return Evidence(what, inside, compared, outside=False)

    def structural_model(self) -> StructuralModel:
        from lstmsim.machines.column.replay.walk import replay

        return replay

    def hardware(self) -> Hardware:
        from lstmsim.machines.column.hardware import HARDWARE

        return HARDWARE

    def chip_counts(self, chip: ColumnNpu) -> Mapping[str, int]:
        """Each thread of a core has banks of its own."""
        return {
            "threads": sum(core.threads for core in chip.cores),
            "tail_width": sum(core.tail_width for core in chip.cores),
            "banks": sum(core.accumulator_banks * core.threads for core in chip.cores),
        }

    def adders(self, chip: ColumnNpu) -> int:
        """Per row `ep - 1` in its tree and one that accumulates.

        A core with `tree_inputs` has its trees built, whatever `ep` is set: `tree_inputs - 1` and an accumulator for
        each `tree_inputs` multipliers (a configurable tail takes its further sums from the tree's own adders).
        """
        total = 0
        for core in chip.cores:
            rows, leaves = core.vp, core.ep
            if core.tree_inputs is not None:
                rows, leaves = core.npe // core.tree_inputs, core.tree_inputs
            total += rows * (leaves - 1) + rows
        return total

    def changes(self, chip: ColumnNpu, jobs: Sequence[Job]) -> Sequence[Change]:
        """What lies around the cores, then the cores themselves, the most telling first."""
        skips = any(core.delta for core in chip.cores) and all(job.density is None for job in jobs)
        switches = any(core.switch_cycles for core in chip.cores)
        useful = (each for each in _OF_CORES.items() if switches or each[0] != "switches for free")
        own = [_on_cores(chip, jobs, name, change) for name, change in useful]
        own += [_thresholds(chip, jobs, *each) for each in (("doubled", 2.0), ("halved", 0.5)) if skips]
        return [*_around_cores(chip, jobs), *own, *one_more_core(chip, jobs)]

    def order_changes(self, chip: ColumnNpu, jobs: Sequence[Job]) -> Sequence[Change]:
        """Fine-grained threads, if there are several jobs."""
        cores = tuple(replace(core, thread_policy="fine") if core.threads > 1 else core for core in chip.cores)
        if len(jobs) < 2 or cores == chip.cores:
            return []
        detail = "thread_policy coarse -> fine"
        return [Change("fine-grained threads", detail, replace(chip, cores=cores), tuple(jobs))]

    def memory_rate(self, chip: ColumnNpu) -> MemoryRate | None:
        """The memory beside the chip, if there is one."""
        if chip.memory is None:
            return None
        widest = max(core.weight_bits for core in chip.cores)
        return MemoryRate(1000 * chip.memory.gb_per_s / chip.frequency_mhz, widest / 8, "memory.gb_per_s, weight_bits")

    def shared_parts(self, chip: ColumnNpu, jobs: Sequence[Job]) -> tuple[str, ...]:
        """The memory, and the links between cores where a job is split."""
        texts = []
        if chip.memory is not None:
            rate, prefetch = f"{chip.memory.gb_per_s:g} GB/s", f"prefetch_blocks {chip.memory.prefetch_blocks}"
            texts.append(f"Memory: {rate}, latency_cycles {chip.memory.latency_cycles}, {prefetch}.")
        if any(job.settled(len(chip.cores)).split for job in jobs):
            texts.append(f"Exchange: latency_cycles {chip.exchange.latency_cycles}, width {chip.exchange.width}.")
        return tuple(texts)


TARGET = _ColumnTarget()
