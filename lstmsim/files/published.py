"""Published figures of recurrent-network accelerators from the tables in `published/`, each with its source.

None of these numbers was simulated: models are compared with them. A table `<name>.csv` has a function of that name and
a class for its rows, whose fields are the columns: their types say what a field of the file must be.
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
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_type_hints

from lstmsim.base.bounded import capped
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import readable_file
from lstmsim.base.wording import listed, nearest, show

#: Most bytes of a table: far more than any table of figures that people typed has.
_MAX_BYTES = 1_000_000
#: Cell -> how many matrices with `hidden` rows take the input in each step. As many matrices take the state.
_GATES: Mapping[str, int] = {"lstm": 4, "gru": 3, "rnn": 1}


class _Kind(NamedTuple):
    """A kind of field: its pattern, its conversion, its name in messages, and its possible words, if they are few."""

    pattern: str
    convert: Callable[[str], object]
    expected: str
    words: tuple[str, ...] = ()

    def parse(self, field: str) -> object:
        """Give the value of a field; `ValueError`, perhaps with a hint, for a wrong one."""
        if not re.fullmatch(self.pattern, field):
            raise ValueError(nearest(field, self.words))
        return self.convert(field)


def _above_zero(field: str) -> float:
    if not float(field):
        raise ValueError
    return float(field)


def _one_of(*words: str) -> _Kind:
    return _Kind("|".join(words), str, listed(words), words)


def _words(field: str) -> str:
    if field != field.strip() or not field.isprintable():
        raise ValueError
    return field


_LINE = "words on one line without blanks around them"
# Plain ASCII digits: float() and int() also take nan, inf, 1e9, 1_000, signs, blanks and digits of other scripts.
_KINDS: Mapping[object, _Kind] = {
    int: _Kind("[1-9][0-9]{0,14}", int, "a whole number above 0, such as 25"),
    float: _Kind(
        r"(?:0|[1-9][0-9]{0,11})(?:\.[0-9]{1,9})?", _above_zero, "a number above 0 in plain decimals, such as 0.425"
    ),
    str: _Kind("(?s:.+)", _words, _LINE),
}
#: Words that may be left out.
Remark = Annotated[str, _Kind("(?s:.*)", _words, _LINE)]
Sizes = Annotated[
    tuple[int, ...],
    _Kind(
        "[1-9][0-9]{0,8}(?:-[1-9][0-9]{0,8})+",
        lambda field: tuple(map(int, field.split("-"))),
        "two or more sizes, such as 1024-512",
    ),
]


@dataclass(frozen=True)
class Measurement:
    """One DeepBench task on one machine. Design, task and batch together name a row.

    A field is None where the source does not print it. `latency_ms` is that of the whole batch; `tops` are 10^12
    operations a second, a multiply-accumulate counts as two; `macs` are the multipliers of the machine.
    """

    design: str
    cell: Annotated[str, _one_of("lstm", "gru")]
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
    note: Remark

    @property
    def task(self) -> str:
        """Cell, hidden units and steps: `lstm-256-150`."""
        return f"{self.cell}-{self.hidden}-{self.steps}"

    @property
    def operations(self) -> int:
        """Additions and multiplications of the matrix products, over all steps and the batch."""
        return 2 * _GATES[self.cell] * self.hidden * (self.input + self.hidden) * self.steps * self.batch

    @property
    def latency_cycles(self) -> float | None:
        """The printed latency in cycles of the machine's clock; None if latency or clock is not printed."""
        if self.latency_ms is None or self.frequency_mhz is None:
            return None
        return self.latency_ms * 1e3 * self.frequency_mhz


@dataclass(frozen=True)
class IntelWorkload:
    """One benchmark of the Intel NPU, on its C++ simulator (`cpp`) and on its RTL. Both run at 300 MHz.

    `sizes` are the elements of the input, then of the output of each layer.
    """

    workload: str
    cell: Annotated[str, _one_of("gemv", "mlp", "rnn", "gru", "lstm")]
    sizes: Sizes
    steps: int
    batch: int
    cpp_cycles: int
    cpp_tops: float
    rtl_cycles: int
    rtl_tops: float
    source: str
    note: Remark
    cpp_note: Remark

    @property
    def operations(self) -> int:
        """Operations as the published TOPS count them.

        The batch is rounded up to a multiple of 6. Every recurrent matrix counts as input * hidden. Element-wise work
        does not count.
        """
        matrices = 2 * _GATES[self.cell] if self.cell in _GATES else 1
        products = sum(wide * tall for wide, tall in pairwise(self.sizes))
        return 2 * matrices * products * self.steps * -(-self.batch // 6) * 6


@dataclass(frozen=True)
class Anchor:
    """One figure of another accelerator. A field is None where the source does not print it.

    Cell `suite` stands for a mean over several networks. `interval_cycles` are from the start of one step to the start
    of the next step, `depth_cycles` from the start to the end of one step; latencies are those of the whole workload.
    """

    design: str
    device: str
    cell: Annotated[str, _one_of("lstm", "gru", "rnn", "suite")]
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
    note: Remark


@dataclass(frozen=True)
class Hardware:
    """One machine, in words of the source. A number is None where the source does not print it.

    `preset` is the chip of lstmsim that describes the machine; empty if none does.
    """

    design: str
    device: str
    organisation: Remark
    precision: str
    macs: int | None
    frequency_mhz: float | None
    peak_tops: float | None
    alm: Remark
    dsp: Remark
    m20k: Remark
    power: Remark
    preset: Remark
    source: str
    note: Remark


@dataclass(frozen=True)
class Claim:
    """A headline number of a paper: its meaning, its value as printed (often a range), the part that was read."""

    key: str
    source: str
    quantity: str
    value: str
    unit: Remark
    where_read: str


@dataclass(frozen=True)
class KernelCounts:
    """Memory-intensive kernels, and calls that copy or set memory, of an inference of a whole network on a GPU under
    two compilers: XLA, and one that fuses what is memory-intensive.
    """

    network: str
    kernels_xla: int
    kernels_fused: int
    copies_xla: int
    copies_fused: int
    source: str
    note: Remark


_Row = TypeVar("_Row")
_Folder = str | os.PathLike[str] | None
_PACKAGE = Path(__file__).resolve().parents[1]
#: How many of the first columns of each table name a row.
_NAMED_BY = {"deepbench": 6, "intel_npu": 1, "accelerators": 8, "hardware": 1, "claims": 1, "fusion": 1}


def published_folder(package: Path = _PACKAGE) -> Path:
    """The folder of the tables.

    package: folder of the package; an installed package has the tables in `_published`, a checkout in `published`
        beside it.
    """
    inside = package / "_published"
    return inside if inside.is_dir() else package.parent / "published"


def table_names() -> tuple[str, ...]:
    """The names of the tables. Each is a file `<name>.csv` and a function of this module."""
    return tuple(_NAMED_BY)


def deepbench(folder: _Folder = None) -> tuple[Measurement, ...]:
    """Read DeepBench tasks on Brainwave, Plasticine, V100, Xeon and Titan Xp.

    folder: folder with tables of the same form; None for the tables of lstmsim.
    `InputError` for a damaged table, here and in the other readers.
    """
    return _read("deepbench", Measurement, folder)


def intel_npu(folder: _Folder = None) -> tuple[IntelWorkload, ...]:
    """Read the 19 benchmarks of the Intel NPU, in the order of the source."""
    return _read("intel_npu", IntelWorkload, folder)


def accelerators(folder: _Folder = None) -> tuple[Anchor, ...]:
    """Read single figures of other accelerators."""
    return _read("accelerators", Anchor, folder)


def hardware(folder: _Folder = None) -> tuple[Hardware, ...]:
    """Read the descriptions of the machines that the other tables name."""
    return _read("hardware", Hardware, folder)


def claims(folder: _Folder = None) -> tuple[Claim, ...]:
    """Read headline numbers of papers and of the column-wise LSTM patent."""
    return _read("claims", Claim, folder)


def fusion(folder: _Folder = None) -> tuple[KernelCounts, ...]:
    """Read how many kernels whole networks have under two compilers."""
    return _read("fusion", KernelCounts, folder)


def _read(table: str, make: Callable[..., _Row], folder: _Folder) -> tuple[_Row, ...]:
    name = os.fspath(Path(published_folder() if folder is None else folder) / f"{table}.csv")
    columns = get_type_hints(make, include_extras=True)
    lines = _lines(name)
    number, header = next(lines, (1, []))
    _check_header(f"{name}:{number}", header, list(columns))
    mistakes: list[Mistake] = []
    rows: list[_Row] = []
    first: dict[tuple[object, ...], int] = {}
    for number, fields in lines:
        row, wrong = _row(f"{name}:{number}", fields, columns)
        mistakes += wrong
        if wrong:
            continue
        rows.append(make(**row))
        key = {each: row[each] for each in header[: _NAMED_BY[table]]}
        earlier = first.setdefault(tuple(key.values()), number)
        if earlier != number:
            what = ", ".join(f"{each} {show(value)}" for each, value in key.items())
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


def _check_header(place: str, header: Sequence[str], expected: list[str]) -> None:
    if header == expected:
        return
    unknown = [each for each in header if each not in expected]
    mistakes = [Mistake(f"{place}: {each}", "this column is missing") for each in expected if each not in header]
    mistakes += [Mistake(f"{place}: {show(each)}", f"unknown column{nearest(each, expected)}") for each in unknown]
    if not mistakes:
        mistakes.append(Mistake(place, f"the header must be {','.join(expected)}, got {show(','.join(header))}"))
    raise InputError(capped(mistakes))


def _row(place: str, fields: Sequence[str], columns: Mapping[str, Any]) -> tuple[dict[str, Any], list[Mistake]]:
    if len(fields) != len(columns):
        return {}, [Mistake(place, f"has {len(fields)} fields, expected {len(columns)}, one for each column")]
    row: dict[str, Any] = {}
    mistakes = []
    for (name, given), field in zip(columns.items(), fields, strict=True):
        # `int | None` has a field that may be empty, `Annotated` a kind of its own
        inner, *more = get_args(given) or (given,)
        if more and more[0] is type(None) and not field:
            row[name] = None
            continue
        kind = more[0] if more and isinstance(more[0], _Kind) else _KINDS[inner]
        try:
            row[name] = kind.parse(field)
        except ValueError as error:
            mistakes.append(Mistake(f"{place}: {name}", f"must be {kind.expected}, got {show(field)}{error}"))
    return row, mistakes
