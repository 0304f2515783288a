"""Published figures of recurrent-network accelerators from the tables in `published/`, each with its source.

None of these numbers was simulated: models are compared with them. Every field is checked.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from lstmsim.base.bounded import capped
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import readable_file
from lstmsim.base.wording import listed, nearest, show

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


#: Most bytes of a table: far more than any table of figures that people typed has.
_MAX_BYTES = 1_000_000
# Plain ASCII digits: float() and int() also take nan, inf, 1e9, 1_000, signs, blanks and digits of other scripts.
_WHOLE = re.compile(r"[1-9][0-9]{0,14}")
_DECIMAL = re.compile(r"(?:0|[1-9][0-9]{0,11})(?:\.[0-9]{1,9})?")
_SIZES = re.compile(r"[1-9][0-9]{0,8}(?:-[1-9][0-9]{0,8})+")


@dataclass(frozen=True)
class Column:
    """One column of a table.

    name: name of the column.
    parse: reads a field; `ValueError` for a wrong one.
    expected: what a field should be, in words.
    optional: whether a field may be empty; it is None then.
    """

    name: str
    parse: Callable[[str], object]
    expected: str
    optional: bool = False


def whole(name: str, optional: bool = False) -> Column:
    """A column of whole numbers above 0.

    >>> whole("steps").parse("25")
    25
    """
    return Column(name, _matching(_WHOLE, int), "a whole number above 0, such as 25", optional)


def decimal(name: str, optional: bool = False) -> Column:
    """A column of numbers above 0 in plain decimals.

    >>> decimal("tops").parse("0.37")
    0.37
    """
    return Column(name, _above_zero, "a number above 0 in plain decimals, such as 0.425", optional)


def sizes(name: str) -> Column:
    """A column of layer sizes, joined by `-`.

    >>> sizes("sizes").parse("1024-512-256")
    (1024, 512, 256)
    """
    split = _matching(_SIZES, lambda field: tuple(int(each) for each in field.split("-")))
    return Column(name, split, "two or more sizes, such as 1024-512")


def one_of(name: str, words: Sequence[str]) -> Column:
    """A column that holds one of a few words.

    >>> one_of("cell", ("lstm", "gru")).expected
    'lstm or gru'
    """

    def parse(field: str) -> str:
        if field not in words:
            raise ValueError(nearest(field, words))
        return field

    return Column(name, parse, listed(words))


def text(name: str, empty: bool = False) -> Column:
    """A column of words on one line, without blanks around them.

    empty: whether a field may have no words.

    >>> text("design").parse("Plasticine")
    'Plasticine'
    """

    def parse(field: str) -> str:
        if field != field.strip() or not field.isprintable() or not (field or empty):
            raise ValueError
        return field

    return Column(name, parse, "words on one line without blanks around them")


def read_table(
    path: str | os.PathLike[str], columns: Sequence[Column], key: Sequence[str]
) -> tuple[dict[str, Any], ...]:
    """Read the rows of a CSV file, in its order, as mappings from names of columns to values."""
    name = os.fspath(path)
    lines = _lines(name)
    number, header = next(lines, (1, []))
    _check_header(name, number, header, columns)
    mistakes: list[Mistake] = []
    rows: list[dict[str, Any]] = []
    first: dict[tuple[object, ...], int] = {}
    for number, fields in lines:
        row, wrong = _row(f"{name}:{number}", fields, columns)
        mistakes += wrong
        if wrong:
            continue
        rows.append(row)
        earlier = first.setdefault(tuple(row[each] for each in key), number)
        if earlier != number:
            what = ", ".join(f"{each} {show(row[each])}" for each in key)
            mistakes.append(Mistake(f"{name}:{number}", f"repeats the row in line {earlier}: {what}; expected it once"))
    if not rows and not mistakes:
        mistakes.append(Mistake(name, "has no rows, expected some below the header"))
    if mistakes:
        raise InputError(capped(mistakes))
    return tuple(rows)


def _lines(name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield for each row the line on which it begins, and its fields."""
    with readable_file(name) as file:
        try:
            content = file.read(_MAX_BYTES + 1)
        except OSError as error:
            raise InputError(Mistake(name, f"cannot be read: {error.strerror}")) from None
    if len(content) > _MAX_BYTES:
        raise InputError(Mistake(name, f"has more than {_MAX_BYTES} bytes, expected a table of published figures"))
    try:
        decoded = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(Mistake(name, f"is no UTF-8 text: byte {error.start} is wrong")) from None
    reader = csv.reader(io.StringIO(decoded, newline=""), strict=True)
    while True:
        number = reader.line_num + 1
        try:
            fields = next(reader, None)
        except csv.Error as error:
            raise InputError(Mistake(f"{name}:{number}", f"is no row of a CSV table: {error}")) from None
        if fields is None:
            return
        yield number, fields


def _check_header(name: str, number: int, header: Sequence[str], columns: Sequence[Column]) -> None:
    expected = [column.name for column in columns]
    if header == expected:
        return
    place = f"{name}:{number}"
    missing = [each for each in expected if each not in header]
    unknown = [each for each in header if each not in expected]
    mistakes = [Mistake(f"{place}: {each}", "this column is missing") for each in missing]
    mistakes += [Mistake(f"{place}: {show(each)}", f"unknown column{nearest(each, expected)}") for each in unknown]
    if not mistakes:
        mistakes.append(Mistake(place, f"the header must be {','.join(expected)}, got {show(','.join(header))}"))
    raise InputError(capped(mistakes))


def _row(place: str, fields: Sequence[str], columns: Sequence[Column]) -> tuple[dict[str, Any], list[Mistake]]:
    if len(fields) != len(columns):
        return {}, [Mistake(place, f"has {len(fields)} fields, expected {len(columns)}, one for each column")]
    row: dict[str, Any] = {}
    mistakes = []
    for column, field in zip(columns, fields, strict=True):
        if column.optional and not field:
            row[column.name] = None
            continue
        try:
            row[column.name] = column.parse(field)
        except ValueError as error:
            hint = str(error)
            mistakes.append(Mistake(f"{place}: {column.name}", f"must be {column.expected}, got {show(field)}{hint}"))
    return row, mistakes


def _matching(pattern: re.Pattern[str], convert: Callable[[str], object]) -> Callable[[str], object]:
    def parse(field: str) -> object:
        if not pattern.fullmatch(field):
            raise ValueError
        return convert(field)

    return parse


def _above_zero(field: str) -> float:
    if not _DECIMAL.fullmatch(field) or float(field) == 0:
        raise ValueError
    return float(field)


_Row = TypeVar("_Row")
_Folder = str | os.PathLike[str] | None

_PACKAGE = Path(__file__).resolve().parents[1]

_SOURCE = (text("source"), text("note", empty=True))
_FIGURES = (
    decimal("tops", True),
    decimal("utilization_pct", True),
    whole("macs", True),
    decimal("frequency_mhz", True),
)
_COLUMNS: Mapping[str, tuple[Column, ...]] = {
    "deepbench": (
        *(text("design"), one_of("cell", ("lstm", "gru")), whole("hidden"), whole("input"), whole("steps")),
        *(whole("batch"), decimal("latency_ms", True), *_FIGURES, *_SOURCE),
    ),
    "intel_npu": (
        *(text("workload"), one_of("cell", ("gemv", "mlp", "rnn", "gru", "lstm")), sizes("sizes"), whole("steps")),
        *(whole("batch"), whole("cpp_cycles"), decimal("cpp_tops"), whole("rtl_cycles"), decimal("rtl_tops"), *_SOURCE),
        text("cpp_note", empty=True),
    ),
    "accelerators": (
        *(text("design"), text("device"), one_of("cell", ("lstm", "gru", "rnn", "suite"))),
        *(whole(each, True) for each in ("layers", "hidden", "input", "steps", "batch")),
        decimal("latency_ms", True),
        *(whole(each, True) for each in ("latency_cycles", "interval_cycles", "depth_cycles")),
        *(*_FIGURES, *_SOURCE),
    ),
    "hardware": (
        *(text("design"), text("device"), text("organisation", empty=True), text("precision"), whole("macs", True)),
        *(decimal("frequency_mhz", True), decimal("peak_tops", True)),
        *(*(text(each, empty=True) for each in ("alm", "dsp", "m20k", "power", "preset")), *_SOURCE),
    ),
    "claims": (
        *(text("key"), text("source"), text("quantity"), text("value"), text("unit", empty=True), text("where_read")),
    ),
    "fusion": (
        *(text("network"), whole("kernels_xla"), whole("kernels_fused"), whole("copies_xla"), whole("copies_fused")),
        *_SOURCE,
    ),
}
_KEYS: Mapping[str, tuple[str, ...]] = {
    "deepbench": ("design", "cell", "hidden", "input", "steps", "batch"),
    "intel_npu": ("workload",),
    "accelerators": ("design", "device", "cell", "layers", "hidden", "input", "steps", "batch"),
    "hardware": ("design",),
    "claims": ("key",),
    "fusion": ("network",),
}


def published_folder(package: Path = _PACKAGE) -> Path:
    """The folder of the tables.

    package: folder of the package; an installed package has the tables in `_published`, a checkout in `published`
        beside it.

    >>> sorted(each.stem for each in published_folder().glob("*.csv")) == sorted(table_names())
    True
    """
    inside = package / "_published"
    return inside if inside.is_dir() else package.parent / "published"


def table_names() -> tuple[str, ...]:
    """The names of the tables. Each is a file `<name>.csv` and a function of this module.

    >>> table_names()
    ('deepbench', 'intel_npu', 'accelerators', 'hardware', 'claims', 'fusion')
    """
    return tuple(_COLUMNS)


def deepbench(folder: _Folder = None) -> tuple[Measurement, ...]:
    """Read DeepBench tasks on Brainwave, Plasticine, V100, Xeon and Titan Xp.

    Titan Xp also has batches of 2 and 4 and other numbers of steps.

    folder: folder with tables of the same form; None for the tables of lstmsim.
    `InputError` for a damaged table.

    >>> len([row for row in deepbench() if row.design == "Plasticine"])
    11
    """
    return _read("deepbench", Measurement, folder)


def intel_npu(folder: _Folder = None) -> tuple[IntelWorkload, ...]:
    """Read the 19 benchmarks of the Intel NPU, in the order of the source; `InputError` for a damaged table.

    >>> len(intel_npu())
    19
    """
    return _read("intel_npu", IntelWorkload, folder)


def accelerators(folder: _Folder = None) -> tuple[Anchor, ...]:
    """Read single figures of other accelerators; `InputError` for a damaged table.

    >>> [row.tops for row in accelerators() if row.design == "RENOWN"]
    [29.6]
    """
    return _read("accelerators", Anchor, folder)


def hardware(folder: _Folder = None) -> tuple[Hardware, ...]:
    """Read the descriptions of the machines that the other tables name; `InputError` for a damaged table.

    >>> {row.design for row in deepbench()} <= {row.design for row in hardware()}
    True
    """
    return _read("hardware", Hardware, folder)


def claims(folder: _Folder = None) -> tuple[Claim, ...]:
    """Read headline numbers of papers and of the column-wise LSTM patent; `InputError` for a damaged table.

    >>> next(each.value for each in claims() if each.key == "remarn-quad-core")
    '2.91'
    """
    return _read("claims", Claim, folder)


def fusion(folder: _Folder = None) -> tuple[KernelCounts, ...]:
    """Read how many kernels whole networks have under two compilers; `InputError` for a damaged table.

    >>> [(row.network, row.kernels_fused) for row in fusion()][:2]
    [('CRNN', 297), ('ASR', 218)]
    """
    return _read("fusion", KernelCounts, folder)


def _read(name: str, make: Callable[..., _Row], folder: _Folder) -> tuple[_Row, ...]:
    path = Path(published_folder() if folder is None else folder) / f"{name}.csv"
    return tuple(make(**row) for row in read_table(path, _COLUMNS[name], _KEYS[name]))
