"""The parallel device as all other packages see it: the answers of its `Target`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.machines.assembly import PerStep, check_size
from lstmsim.machines.parallel.device import ParallelCore, ParallelDevice, cells_refusal, joint_mistakes
from lstmsim.machines.parallel.jobs import per_step
from lstmsim.machines.parallel.writing.addresses import SECTOR_BYTES
from lstmsim.machines.target import Evidence, Fault, Fidelity, MemoryRate, Target
from lstmsim.model.model import Model
from lstmsim.model.scenario import Job, claims_of
from lstmsim.program.program import Program

if TYPE_CHECKING:
    from lstmsim.machines.change import Change


class _ParallelTarget(Target):
    """The parallel device: one entry of `cores` with a `count`, for all SMs are equal."""

    kind: ClassVar[str] = "parallel-device"
    title: ClassVar[str] = "parallel device"
    chip: ClassVar[type] = ParallelDevice
    core: ClassVar[type] = ParallelCore
    together: ClassVar[frozenset[str]] = frozenset({"warp", "lanes", "sfu_lanes", "latency"})
    batches: ClassVar[bool] = True
    deals: ClassVar[bool] = False
    one_by_one: ClassVar[bool] = True
    warms: ClassVar[bool] = True
    counts: ClassVar[tuple[str, ...]] = ("sms", "warps")
    other_numbers: ClassVar[str] = "a parallel device computes with floating point, not fixed point"
    fidelity: ClassVar[Fidelity] = Fidelity(
        exact=(
            "its own timing contract (docs/parallel_device.md), cycle by cycle: both engines and a model in the tests "
            "that steps through every cycle",
            "its golden cases, made by independent models",
        ),
        assumed=(
            "latencies of shuffles and barriers, the dispatcher's rate, 87 % of the DRAM's rate",
            "no instruction fetch, no register banks, no TLB, no rows of DRAM, no bound on loads in flight",
            "numbers of dense layers, which are timed and not computed",
        ),
    )

    def evidence(
        self, chip: ParallelDevice, jobs: Sequence[Job], *, bits: bool, preset: str, changed: Collection[str]
    ) -> Evidence:
        """The contract, and for the preset `v100` in FP16 what was published of its kind of tasks."""
        ran = {(job.batch, *((each.cell.name, each.directions) for each in job.model.layers)) for job in jobs}
        tasks = bool(ran) and ran <= {(1, ("gru", 1)), (1, ("lstm", 1))} and chip.element_bytes == 2
        if not tasks or {preset, *changed} != {"v100", "element_bytes"}:
            return Evidence()
        return Evidence(compared="published latencies, within a factor of 3", silicon=True, outside=False)

    def faults_of_all(self, cores: Sequence[ParallelCore]) -> Sequence[str]:
        """A fault if the SMs are not equal."""
        return ("must be equal: all SMs of a parallel device are alike",) if len(set(cores)) > 1 else ()

    def chip_faults(self, entry: Mapping[str, Any], cores: Sequence[ParallelCore]) -> Sequence[Fault]:
        """A fault if each step's kernels are to be fused and yet all steps to be one kernel."""
        wrong = joint_mistakes(entry.get("recurrent", "kernels"), entry.get("fusion", "cell"))
        return tuple(Fault.at(key, text, "recurrent") for key, text in wrong)

    def model_refusal(self, entry: Mapping[str, Any], model: Model) -> str | None:
        """A cell that no kernels are written for runs by fused kernels only."""
        return cells_refusal(model, entry.get("fusion", "cell"))

    def check(self, chip: ParallelDevice, job: Job) -> None:
        """`InputError` if the device has no kernels for a job, or the job asks for what it does not have."""
        self.check_job(chip.cores, job)
        refused = cells_refusal(job.model, chip.fusion)
        if refused:
            raise InputError(Mistake(f"job {job.name}", f"no core can run it: {refused}"))
        refuse(Mistake(f"job {job.name}: {key}", text) for key, text in _mistakes(job))

    def lower(self, chip: ParallelDevice, jobs: Sequence[Job], *, templates: bool = False) -> Program:
        """The Program of these jobs on that chip; it has tables, no objects."""
        from lstmsim.machines.parallel.jobs import device_jobs
        from lstmsim.machines.parallel.lowering.program import program_of_jobs
        from lstmsim.program.unflatten import tabled

        if templates:
            raise InputError(
                "kernels follow each other by barriers: jobs of a parallel device are served as whole ones"
            )
        for job in jobs:
            self.check(chip, job)
        claims, persistent = claims_of(jobs, len(chip.cores)), chip.recurrent == "persistent"
        bound = partial(self.per_step, fused=chip.fusion != "cell", persistent=persistent)
        check_size([[chip.core]] * len(claims.different), claims, bound)
        lowered = program_of_jobs(chip, device_jobs(chip, jobs))
        return tabled(lowered.flat, lowered.names)

    def per_step(
        self,
        cores: Sequence[ParallelCore],
        model: Model,
        batch: int = 1,
        split: str = "",
        members: int = 1,
        *,
        fused: bool = False,
        persistent: bool = False,
    ) -> PerStep:
        """Bounds on the operations of one step of a job; fused, persistent: as of `sizes.per_step`."""
        return per_step(cores, model, batch, fused=fused, persistent=persistent)

    def chip_counts(self, chip: ParallelDevice) -> Mapping[str, int]:
        """SMs, and warps that they hold at once."""
        return {"sms": len(chip.cores), "warps": sum(core.max_warps for core in chip.cores)}

    def changes(self, chip: ParallelDevice, jobs: Sequence[Job]) -> Sequence[Change]:
        """What all SMs share, then the SMs themselves."""
        from lstmsim.machines.parallel.what_if import changes

        return changes(chip, jobs)

    def order_changes(self, chip: ParallelDevice, jobs: Sequence[Job]) -> Sequence[Change]:
        """The other policy of the schedulers."""
        from lstmsim.machines.parallel.what_if import order_changes

        return order_changes(chip, jobs)

    def memory_rate(self, chip: ParallelDevice) -> MemoryRate:
        """A sector of each partition in `dram` cycles."""
        rate = chip.partitions * SECTOR_BYTES / chip.dram
        return MemoryRate(rate, chip.element_bytes, "partitions, dram, element_bytes")

    def kernels(self, chip: ParallelDevice, jobs: Sequence[Job]) -> tuple[str, ...]:
        """How what follows the products of a step became kernels, where the cells' own kernels do not run."""
        from lstmsim.machines.parallel.jobs import fused_text

        return fused_text(chip, jobs)

    def begins_cold(self, chip: ParallelDevice) -> bool:
        """A persistent kernel loads its weights once, and so do kernels for each step where a cold L2 has room."""
        return chip.recurrent == "persistent" or chip.l2_state == "cold"

    def element_bytes(self, chip: ParallelDevice) -> int:
        """Of arrays in device memory."""
        return chip.element_bytes

    def shared_parts(self, chip: ParallelDevice, jobs: Sequence[Job]) -> tuple[str, ...]:
        """The memory, and how kernels begin."""
        memory = f"{chip.partitions} partitions, a sector from DRAM takes {chip.dram} cycles, L2 {chip.l2_bytes} bytes"
        return (f"Memory: {memory}, {chip.l2_state} at the start.", f"Kernels: launch {chip.launch} cycles.")


def _mistakes(job: Job) -> Iterator[tuple[str, str]]:
    if job.cores is not None:
        yield "cores", "a parallel device runs a job on all of its SMs: leave it out"
    if job.frame_interval:
        yield "frame_interval", f"a parallel device has the whole input of a job at once, got {job.frame_interval}"
    if job.preempts:
        yield "preempts", "a parallel device runs one job after the other, each to its end: leave it out"
    for key in ("queue_limit", "patience"):
        if getattr(job, key) is not None:
            yield key, f"a parallel device turns no jobs away: leave it out, got {getattr(job, key)}"


TARGET = _ParallelTarget()
