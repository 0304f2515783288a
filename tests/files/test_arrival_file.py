"""CSV files of arrivals: exact cycles, words beside them, one pass, and a sentence for everything that is wrong."""

from __future__ import annotations

import tracemalloc
from contextlib import suppress
from decimal import Decimal
from math import floor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstmsim.base.errors import InputError
from lstmsim.base.keys import keys_of
from lstmsim.files.scenario.arrival_file import MAX_LABELS, read_arrivals, seconds
from lstmsim.files.scenario.request_schema import ARRIVAL_KEYS, ArrivalEntry, arrival_mistakes, describe
from lstmsim.files.scenario.schema import check
from lstmsim.files.yaml.document import document_of
from lstmsim.traffic.arrivals import Bursty, ClosedLoop, Fixed, Periodic, Poisson, Stream, Timestamps, arrivals


def written(folder: Path, content: bytes | str) -> Path:
    path = folder / "a.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_cycles_and_words(tmp_path: Path) -> None:
    path = written(tmp_path, 'tenant,arrival_cycles,job\na,0,x\nb,+7,y\n\n"a",  7,"x, y"\r\n')
    file = read_arrivals(path, 250)
    assert list(file.cycles) == [0, 7, 7]
    assert file.labels == {"tenant": ("a", "b", "a"), "job": ("x", "y", "x, y")}
    assert file.labels["tenant"][0] is file.labels["tenant"][2]
    assert Timestamps(tuple(file.cycles)) == Timestamps((0, 7, 7))
    assert list(arrivals(Timestamps(tuple(file.cycles)), 3, 250)) == [0, 7, 7]


@pytest.mark.parametrize(
    ("text", "mhz", "cycle"),
    [
        ("0.3", 260, 78_000),  # the double 0.3 is below 3 / 10
        ("1", 250, 250_000),
        ("2.5e-1", 250, 62_500),
        ("25E+1", 0.1, 25_000),
        ("0.0000039999", 250, 0),
        ("0.000004", 250, 1),
        ("1.", 1, 1000),
        ("0e99", 1, 0),
    ],
)
def test_milliseconds_become_the_cycle_that_they_fall_into(tmp_path: Path, text: str, mhz: float, cycle: int) -> None:
    assert list(read_arrivals(written(tmp_path, f"arrival_ms\n{text}"), mhz).cycles) == [cycle]


@given(st.lists(st.decimals(0, 10**9, allow_nan=False, places=9), min_size=1, max_size=20), st.integers(1, 10**9))
def test_milliseconds_are_exact(tmp_path_factory: pytest.TempPathFactory, times: list[Decimal], kilohertz: int) -> None:
    times.sort()
    path = written(tmp_path_factory.mktemp("a"), "arrival_ms\n" + "\n".join(f"{each:f}" for each in times))
    assert list(read_arrivals(path, kilohertz / 1000).cycles) == [floor(each * kilohertz) for each in times]


def test_a_byte_order_mark_and_any_line_ends(tmp_path: Path) -> None:
    assert list(read_arrivals(written(tmp_path, b"\xef\xbb\xbfarrival_cycles\r\n1\r\n2"), 1).cycles) == [1, 2]


C = "arrival_cycles\n"
HOSTILE: list[tuple[bytes | str, str]] = [
    ("", r"a\.csv: is empty, expected a CSV file of arrivals"),
    ("\n\n", r"a\.csv:1: must name either arrival_cycles or arrival_ms as a column, got neither"),
    (C, r"a\.csv: has a header only, expected arrivals below it"),
    ("5\n6\n", r"a\.csv:1: unknown column '5'; known columns: .* \(the first line must be a header\)"),
    ("arrival_cycle\n1\n", r"a\.csv:1: unknown column 'arrival_cycle'; did you mean 'arrival_cycles'\?"),
    ("arrival_ms,arrival_cycles\n1,1\n", r"a\.csv:1: must name either .* got both"),
    ("TIMESTAMP,arrival_ms\n1,1\n", r"a\.csv:1: must name one kind of times only, got arrival_ms and TIMESTAMP"),
    ("TIMESTAMP,end_timestamp,duration\n1,1,1\n", "only, got TIMESTAMP and end_timestamp with duration"),
    ("end_timestamp\n1\n", r"a\.csv:1: has end_timestamp, and duration is missing: expected both$"),
    ("tenant\na\n", r"a\.csv:1: must name either .* got neither"),
    ("arrival_ms,arrival_ms\n1,1\n", r"a\.csv:1: column 'arrival_ms' comes 2 times"),
    ("arrival_ms,job,job\n1,a,b\n", r"a\.csv:1: column 'job' comes 2 times"),
    (C + "1,2\n", r"a\.csv:2: has 2 columns, expected 1: arrival_cycles"),
    ("arrival_ms;job\n1;2\n", r"a\.csv:1: unknown column 'arrival_ms;job'"),
    (C + "1\nNaN\n", r"a\.csv:3: arrival_cycles: must be a finite number, got 'NaN'"),
    ("arrival_ms\n-inf\n", r"a\.csv:2: arrival_ms: must be a finite number, got '-inf'"),
    ("arrival_ms\n-0.5\n", r"a\.csv:2: arrival_ms: must be at least 0, got -0\.5"),
    (C + "-3\n", r"a\.csv:2: arrival_cycles: must be at least 0, got -3"),
    (C + "1.5\n", r"must be a whole number of cycles in plain digits, got 1\.5"),
    (C + "1e3\n", r"must be a whole number of cycles in plain digits, got 1e3"),
    (C + "1_000\n", r"must be a whole number of cycles in plain digits, got '1_000'"),
    (C + "٣\n", "must be a whole number of cycles"),
    (C + "0x10\n", "got '0x10'"),
    (C + '""\n', "must not be empty, got ''"),
    ("arrival_ms\nsoon\n", r"must be a number of milliseconds, such as 2\.5, got 'soon'"),
    ("arrival_ms\n1\0\n", "got '1.x00'"),
    (C + "5\n9\n7\n", r"a\.csv:4: arrival_cycles: goes back in time: 7 after a later arrival in line 3"),
    (C + f"{2**62}\n{2**62 + 1}\n", r"a\.csv:3: .*must lie within 2\^62 cycles .*got 4611686018427387905"),
    (C + "9" * 3000 + "\n", r"must lie within 2\^62 cycles .* in at most 40 digits, got 9{37}\.\.\. \(3000 letters\)"),
    ("arrival_ms\n1e99\n", r"must lie within 2\^62 cycles .*got 1e99"),
    ("arrival_ms\n1e9999\n", r"such as 2\.5, got 1e9999"),
    (C + "1" * 5000, r"a\.csv:2: is longer than 4096 bytes, expected one arrival per line"),
    (b"arrival_cycles\n1\n\xff\xfe\n", r"a\.csv:3: is no UTF-8 text: byte 1 of the line is wrong"),
    ("arrival_cycles\n1\n".encode("utf-16"), r"a\.csv:1: is no UTF-8 text"),
    (C + '"1\n2"\n', r"a\.csv:2: has quotes that do not close"),
    ('"arrival_cycles\n', r"a\.csv:1: has quotes that do not close"),
    (C + '"1"2\n', r"a\.csv:2: has quotes that do not close"),
    ("arrival_ms,job\n1,\n", r"a\.csv:2: job: must be printable words .* got ''"),
    ("arrival_ms,job\n1, a\n", r"a\.csv:2: job: must be printable words .* got ' a'"),
    ("arrival_ms,tenant\n1,a\tb\n", r"a\.csv:2: tenant: must be printable words"),
    ("arrival_ms,tenant\n1," + "a" * 201, r"a\.csv:2: tenant: must be printable words of at most 200"),
]


@pytest.mark.parametrize(("content", "sentence"), HOSTILE)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, content: bytes | str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as error:
        read_arrivals(written(tmp_path, content), 250)
    assert all(len(line) < 400 for line in str(error.value).splitlines())


def test_all_that_is_wrong_is_said_at_once_up_to_twenty(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        read_arrivals(written(tmp_path, "arrival_ms\nnan\n5\n-1\n4\n6,7\n" + "x\n" * 30), 250)
    lines = str(error.value).splitlines()
    assert [line.split("a.csv:")[1].split(":")[0] for line in lines[:5]] == ["2", "4", "5", "6", "7"]
    assert len(lines) == 21
    assert lines[-1] == "and 14 more like these"


def test_too_many_rows_and_words(tmp_path: Path) -> None:
    path = written(tmp_path, C + "1\n" * 11)
    assert len(read_arrivals(path, 250, limit=11).cycles) == 11
    with pytest.raises(InputError, match=r"a\.csv:12: has more than 10 arrivals"):
        read_arrivals(path, 250, limit=10)
    many = "arrival_cycles,job\n" + "".join(f"1,{number}\n" for number in range(MAX_LABELS + 1))
    with pytest.raises(InputError, match=rf"a\.csv:{MAX_LABELS + 2}: job: makes more than {MAX_LABELS} different"):
        read_arrivals(written(tmp_path, many), 250)


def test_folders_and_clocks(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        read_arrivals(tmp_path, 250)
    with pytest.raises(InputError, match="frequency_mhz"):
        read_arrivals(written(tmp_path, C + "1"), float("nan"))


@given(st.binary(max_size=200))
def test_any_bytes_give_arrivals_or_a_sentence(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = written(tmp_path_factory.mktemp("a"), b"arrival_cycles,job\n" + content)
    # nothing but an InputError comes out
    with suppress(InputError):
        cycles = list(read_arrivals(path, 250).cycles)
        assert cycles
        assert cycles == sorted(cycles)


def test_only_the_arrivals_are_kept(tmp_path: Path) -> None:
    """8 bytes for each, in a list that grows by an eighth and is copied then, and 8 for its word."""
    count = 4_000
    # what the first file of a process leaves behind (imports, caches) is not of this one
    read_arrivals(written(tmp_path, "arrival_cycles,tenant\n1,t\n"), 250)
    path = written(tmp_path, "arrival_cycles,tenant\n" + "".join(f"{n},t{n % 7}\n" for n in range(count)))
    tracemalloc.start()
    file = read_arrivals(path, 250)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(file.cycles) == count
    assert kept < count * 20
    assert peak < count * 40


ENTRIES = [
    ({"kind": "fixed", "interval_cycles": 5}, Fixed(5)),
    ({"kind": "periodic", "interval_cycles": 5, "jitter_cycles": 2, "start_cycle": 9, "seed": 3}, Periodic(5, 2, 9)),
    ({"kind": "poisson", "rate_per_second": 200}, Poisson(200.0)),
    ({"kind": "bursty", "on_rate_per_second": 200, "mean_on_ms": 50, "mean_off_ms": 1}, Bursty(200.0, 50.0, 1.0)),
    ({"kind": "stream", "frame_ms": 10}, Stream(10.0)),
    ({"kind": "closed", "clients": 4, "think_ms": 0, "think": "fixed"}, ClosedLoop(4, 0.0, "fixed")),
]


@pytest.mark.parametrize(("data", "description"), ENTRIES)
def test_entries_stand_for_descriptions(data: dict[str, object], description: object) -> None:
    entry, _ = check(ArrivalEntry, document_of(data))
    assert entry is not None
    assert arrival_mistakes(entry) == []
    assert describe(entry) == description


def test_every_kind_has_its_keys_and_no_others() -> None:
    kinds = keys_of(ArrivalEntry)["kind"].type
    assert set(ARRIVAL_KEYS) == set(kinds.__args__)
    named = {key for needed, allowed in ARRIVAL_KEYS.values() for key in (*needed, *allowed)}
    assert named == set(keys_of(ArrivalEntry)) - {"kind"}
    for kind, (needed, _) in ARRIVAL_KEYS.items():
        assert [key for key, _ in arrival_mistakes(ArrivalEntry(kind=kind))] == list(needed)  # type: ignore[arg-type]


def test_keys_of_other_kinds_and_numbers_that_do_not_fit() -> None:
    [(key, text)] = arrival_mistakes(ArrivalEntry(kind="stream", frame_ms=10, rate_per_second=5))
    assert (key, text) == (
        "rate_per_second",
        "is no key of stream; its keys: frame_ms, start_cycle, streams, phases, session and move_cycles",
    )
    [(key, text)] = arrival_mistakes(ArrivalEntry(kind="fixed", interval_cycles=10, path="a.csv"))
    assert key == "path"
    [(key, text)] = arrival_mistakes(ArrivalEntry(kind="bursty", on_rate_per_second=0.1, mean_on_ms=1, mean_off_ms=1))
    assert (key, text.endswith("use poisson for arrivals that come one by one")) == ("mean_on_ms", True)
    assert arrival_mistakes(ArrivalEntry(kind="file", path="a.csv")) == []
    with pytest.raises(InputError, match=r"a\.csv: arrivals of a file are read"):
        describe(ArrivalEntry(kind="file", path="a.csv"))


@pytest.mark.parametrize(
    "data",
    [
        {"kind": "poison"},
        {"kind": "poisson", "rate_per_second": float("nan")},
        {"kind": "poisson", "rate_per_second": 0},
        {"kind": "poisson", "rate_per_second": "5"},
        {"kind": "file", "path": "a.yaml"},
        {"kind": "file", "path": "a.csv", "speedup": 0},
        {"kind": "file", "path": "a.csv", "rows": 0},
        {"kind": "fixed", "interval_cycles": 1.5},
        {"kind": "fixed", "interval": 1},
        {"kind": "closed", "clients": 10**9, "think_ms": 1},
    ],
)
def test_values_outside_the_schema_are_refused(data: dict[str, object]) -> None:
    document = document_of(data)
    assert check(ArrivalEntry, document)[0] is None
    assert len(document.mistakes) == 1


def test_seconds_are_whole_femtoseconds_rounded_down() -> None:
    assert [seconds(text) for text in ("0.134", "1.9e-15", "0")] == [134 * 10**12, 1, 0]
