"""The rows of the tables of published figures: one class for each table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

#: Cell -> how many matrices with `hidden` rows take the input in each step. As many matrices take the state.
_GATES: Mapping[str, int] = {"lstm": 4, "gru": 3, "rnn": 1}


@dataclass(frozen=True)
class Measurement:
    """One DeepBench task on one machine. Design, task and batch together name a row.

    A field is None where the source does not print it.

    design: name of the machine.
    cell: `lstm`, `gru` or `rnn`.
    hidden, input: units, elements of x.
    steps, batch: time steps, inferences that run together.
    latency_ms: of the whole batch.
    tops: 10^12 operations a second; a multiply-accumulate counts as two.
    utilization_pct: percent.
    macs: multipliers of the machine.
    frequency_mhz: clock.
    source, note: where the figures were read, and a remark.

    >>> from lstmsim.files.published import deepbench
    >>> row = deepbench()[0]
    >>> row.design, row.task, row.batch, row.latency_ms, row.tops
    ('Brainwave BW_S10', 'lstm-256-150', 1, 0.425, 0.37)
    """

    design: str
    cell: str
    hidden: int
    input: int
    steps: int
    batch: int
    latency_ms: float | None
    tops: float | None
    utilization_pct: float | None
    macs: int | None
    frequency_mhz: float | None
    source: str
    note: str

    @property
    def task(self) -> str:
        """Cell, hidden units and steps: `lstm-256-150`.

        >>> from lstmsim.files.published import deepbench
        >>> deepbench()[-1].task
        'gru-2816-1500'
        """
        return f"{self.cell}-{self.hidden}-{self.steps}"

    @property
    def operations(self) -> int:
        """Additions and multiplications of the matrix products, over all steps and the batch.

        Element-wise work does not count.

        >>> from lstmsim.files.published import deepbench
        >>> deepbench()[0].operations == 2 * 4 * 256 * (256 + 256) * 150
        True
        """
        return 2 * _GATES[self.cell] * self.hidden * (self.input + self.hidden) * self.steps * self.batch

    @property
    def latency_cycles(self) -> float | None:
        """The printed latency in cycles of the machine's clock; None if latency or clock is not printed.

        It is as exact as the printed figures.

        >>> from lstmsim.files.published import deepbench
        >>> round(deepbench()[0].latency_cycles)
        106250
        """
        if self.latency_ms is None or self.frequency_mhz is None:
            return None
        return self.latency_ms * 1e3 * self.frequency_mhz


@dataclass(frozen=True)
class IntelWorkload:
    """One benchmark of the Intel NPU, on its C++ simulator (`cpp`) and on its RTL. Both run at 300 MHz.

    workload, cell: names.
    sizes: elements of the input, then of the output of each layer.
    steps, batch: time steps, inferences that run together.
    cpp_cycles, cpp_tops, rtl_cycles, rtl_tops: printed cycles and TOPS.
    source: where the figures were read.
    note: remark on the workload.
    cpp_note: remark on the figures of the C++ simulator alone.

    >>> from lstmsim.files.published import intel_npu
    >>> row = intel_npu()[14]
    >>> row.workload, row.sizes, row.cpp_cycles, row.rtl_cycles
    ('15_lstm_1024_8', (1024, 1024), 7585, 8053)
    """

    workload: str
    cell: str
    sizes: tuple[int, ...]
    steps: int
    batch: int
    cpp_cycles: int
    cpp_tops: float
    rtl_cycles: int
    rtl_tops: float
    source: str
    note: str
    cpp_note: str

    @property
    def operations(self) -> int:
        """Operations as the published TOPS count them.

        The batch is rounded up to a multiple of 6. Every recurrent matrix counts as input * hidden. Element-wise work
        does not count.

        >>> from lstmsim.files.published import intel_npu
        >>> intel_npu()[0].operations == 2 * 6 * 512 * 512
        True
        """
        matrices = 2 * _GATES[self.cell] if self.cell in _GATES else 1
        products = sum(wide * tall for wide, tall in pairwise(self.sizes))
        return 2 * matrices * products * self.steps * -(-self.batch // 6) * 6


@dataclass(frozen=True)
class Anchor:
    """One figure of another accelerator. A field is None where the source does not print it.

    design, device: names.
    cell: name of the cell; `suite` stands for a mean over several networks.
    layers, hidden, input, steps, batch: sizes of the workload.
    latency_ms, latency_cycles: of the whole workload.
    interval_cycles: from the start of one step to the start of the next step.
    depth_cycles: from the start to the end of one step.
    tops: 10^12 operations a second.
    utilization_pct: percent.
    macs: multipliers of the machine.
    frequency_mhz: clock.
    source, note: where the figures were read, and a remark.

    >>> from lstmsim.files.published import accelerators
    >>> row = accelerators()[0]
    >>> row.design, row.interval_cycles, row.depth_cycles, row.latency_cycles
    ('HLS LSTM', 11, 30, 326)
    """

    design: str
    device: str
    cell: str
    layers: int | None
    hidden: int | None
    input: int | None
    steps: int | None
    batch: int | None
    latency_ms: float | None
    latency_cycles: int | None
    interval_cycles: int | None
    depth_cycles: int | None
    tops: float | None
    utilization_pct: float | None
    macs: int | None
    frequency_mhz: float | None
    source: str
    note: str


@dataclass(frozen=True)
class Hardware:
    """One machine. A number is None where the source does not print it.

    design, device, organisation, precision: words of the source.
    macs: multipliers.
    frequency_mhz: clock.
    peak_tops: 10^12 operations a second.
    alm, dsp, m20k: logic, multiplier blocks and memory blocks, as the source words them.
    power: as the source words it.
    preset: the chip of lstmsim that describes the machine; empty if none does.
    source, note: where the figures were read, and a remark.

    >>> from lstmsim.files.published import hardware
    >>> row = hardware()[0]
    >>> row.design, row.macs, row.frequency_mhz, row.peak_tops
    ('Brainwave BW_S10', 96000, 250.0, 48.0)
    """

    design: str
    device: str
    organisation: str
    precision: str
    macs: int | None
    frequency_mhz: float | None
    peak_tops: float | None
    alm: str
    dsp: str
    m20k: str
    power: str
    preset: str
    source: str
    note: str


@dataclass(frozen=True)
class Claim:
    """A headline number of a paper.

    key: name of the row.
    quantity: what the number says.
    value: as printed, often a range.
    unit: unit of the value.
    source: the paper.
    where_read: which part of the source was read.

    >>> from lstmsim.files.published import claims
    >>> next(each for each in claims() if each.key == "patent-ep-65536").value
    '16-64'
    """

    key: str
    quantity: str
    value: str
    unit: str
    source: str
    where_read: str


@dataclass(frozen=True)
class KernelCounts:
    """Kernels of a whole network on a GPU under two compilers: XLA, and one that fuses what is memory-intensive.

    network: its name.
    kernels_xla, kernels_fused: memory-intensive kernels of an inference.
    copies_xla, copies_fused: calls that copy or set memory.
    source, note: where the figures were read, and a remark.

    >>> from lstmsim.files.published import fusion
    >>> fusion()[0].network, fusion()[0].kernels_xla
    ('CRNN', 986)
    """

    network: str
    kernels_xla: int
    kernels_fused: int
    copies_xla: int
    copies_fused: int
    source: str
    note: str
