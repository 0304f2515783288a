"""An edited figure is noticed, and a damaged table of figures is refused with a sentence."""

from __future__ import annotations

import csv
import io
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstmsim.base.errors import InputError
from lstmsim.files import published
from lstmsim.files.published import claims, deepbench, intel_npu, published_folder, table_names
from tests.files.published_rows import changes, fields_of

FOLDER = published_folder()
READERS: dict[str, Callable[..., object]] = {name: getattr(published, name) for name in table_names()}
DIGIT = re.compile(r"[0-9]")
#: Every column of every table that has a digit somewhere.
COLUMNS = [
    (table, column)
    for table in table_names()
    for column, fields in enumerate(zip(*fields_of(FOLDER, table)[1:], strict=True))
    if any(DIGIT.search(field) for field in fields)
]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FOLDER, tmp_path / "published"))


def write(folder: Path, table: str, rows: list[list[str]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    (folder / f"{table}.csv").write_text(text.getvalue(), encoding="utf-8")


def test_the_tables_hold_what_was_published():
    assert not changes(FOLDER)


@pytest.mark.halved
@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_one_edited_digit_is_noticed(copy, table, column):
    rows = fields_of(copy, table)
    # The first digit of the first, and the last of the last row that has some here.
    lines = [line for line in range(1, len(rows)) if DIGIT.search(rows[line][column])]
    for line, which in ((lines[0], 0), (lines[-1], -1)):
        place = [match.start() for match in DIGIT.finditer(rows[line][column])][which]
        edited = [list(row) for row in rows]
        field = edited[line][column]
        edited[line][column] = field[:place] + str((int(field[place]) + 1) % 10) + field[place + 1 :]
        write(copy, table, edited)
        reported = changes(copy)
        assert reported
        assert all(each.startswith(f"{table}.csv: the row ") for each in reported)
        assert any(rows[line][0] in each for each in reported)


@pytest.mark.parametrize("table", table_names())
def test_dropped_added_and_moved_rows_are_noticed(copy, table):
    header, *rows = fields_of(copy, table)
    write(copy, table, [header, *rows[:-1]])
    (reported,) = changes(copy)
    assert re.fullmatch(rf"{table}\.csv: the row '.*{re.escape(rows[-1][0])}.*' is missing", reported)
    write(copy, table, [header, *rows, ["mine", *rows[-1][1:]]])
    (reported,) = changes(copy)
    assert re.fullmatch(rf"{table}\.csv: the row 'mine.*' is new", reported)
    write(copy, table, [header, *reversed(rows)])
    assert changes(copy) == [f"{table}.csv: the rows stand in another order"]
    write(copy, table, [[*header[:-1], "other"], *rows])
    assert changes(copy)


HEAD = "workload,cell,sizes,steps,batch,cpp_cycles,cpp_tops,rtl_cycles,rtl_tops,source,note,cpp_note\n"
ROW = "a,gemv,512-512,1,6,167,5.65,266,3.55,somewhere,,\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "intel_npu.csv:1: workload: this column is missing"),
        (HEAD, "intel_npu.csv: has no rows, expected some below the header"),
        (HEAD.replace("steps,", ""), "intel_npu.csv:1: steps: this column is missing"),
        (HEAD.replace("cpp_tops", "cpp_top"), "intel_npu.csv:1: 'cpp_top': unknown column; did you mean 'cpp_tops'?"),
        (HEAD.replace("workload,cell", "cell,workload"), "intel_npu.csv:1: the header must be workload,cell,"),
        (HEAD.replace("cpp_note", "cpp_note,cpp_note"), "intel_npu.csv:1: the header must be workload,cell,"),
        (HEAD + ROW.replace(",6,", ","), "intel_npu.csv:2: has 11 fields, expected 12, one for each column"),
        (HEAD + ROW + "\n" + ROW, "intel_npu.csv:3: has 0 fields, expected 12"),
        (HEAD + ROW + ROW, "intel_npu.csv:3: repeats the row in line 2: workload 'a'; expected it once"),
        (HEAD + ROW.replace("somewhere", ""), "intel_npu.csv:2: source: must be words on one line without blanks"),
        (HEAD + ROW.replace("somewhere", " "), "source: must be words on one line without blanks around them, got ' '"),
        (HEAD + ROW.replace("somewhere", '"a\nb"'), "intel_npu.csv:2: source: must be words on one line"),
        (HEAD + ROW.replace("5.65", "nan"), "cpp_tops: must be a number above 0 in plain decimals, such as 0.425, got"),
        (HEAD + ROW.replace("5.65", "inf"), "intel_npu.csv:2: cpp_tops: must be a number above 0"),
        (HEAD + ROW.replace("5.65", "1e9"), "intel_npu.csv:2: cpp_tops: must be a number above 0"),
        (HEAD + ROW.replace("5.65", "-5.65"), "intel_npu.csv:2: cpp_tops: must be a number above 0"),
        (HEAD + ROW.replace("5.65", "0.00"), "intel_npu.csv:2: cpp_tops: must be a number above 0"),
        (HEAD + ROW.replace("5.65", "5,65"), "intel_npu.csv:2: has 13 fields, expected 12"),
        (HEAD + ROW.replace("5.65", ""), "intel_npu.csv:2: cpp_tops: must be a number above 0"),
        (HEAD + ROW.replace("5.65", "٥"), "intel_npu.csv:2: cpp_tops: must be a number above 0"),
        (HEAD + ROW.replace("167", "167.0"), "cpp_cycles: must be a whole number above 0, such as 25, got '167.0'"),
        (HEAD + ROW.replace("167", "1_67"), "intel_npu.csv:2: cpp_cycles: must be a whole number above 0"),
        (HEAD + ROW.replace("167", "0"), "intel_npu.csv:2: cpp_cycles: must be a whole number above 0"),
        (HEAD + ROW.replace("167", "9" * 5000), "intel_npu.csv:2: cpp_cycles: must be a whole number above 0"),
        (HEAD + ROW.replace("512-512", "512"), "sizes: must be two or more sizes, such as 1024-512, got '512'"),
        (HEAD + ROW.replace("gemv", "gem"), "must be gemv, mlp, rnn, gru or lstm, got 'gem'; did you mean 'gemv'?"),
        (HEAD + ROW.replace("somewhere", '"open'), "intel_npu.csv:2: is no row of a CSV table: unexpected end of data"),
        (HEAD + ROW.replace("somewhere", '"a"b'), "intel_npu.csv:2: is no row of a CSV table"),
        (HEAD + ROW * 40, "and 19 more like these"),
        (HEAD + "a" * 1_000_001, "intel_npu.csv: has more than 1000000 bytes"),
    ],
)
def test_damaged_tables_give_sentences(tmp_path, text, sentence):
    (tmp_path / "intel_npu.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        intel_npu(tmp_path)
    assert sentence in str(caught.value)


def test_every_mistake_is_named_at_once(tmp_path):
    (tmp_path / "intel_npu.csv").write_text(HEAD + ROW.replace("167", "x").replace("3.55", "y"), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        intel_npu(tmp_path)
    assert [each.location.rsplit(" ", 1)[1] for each in caught.value.mistakes] == ["cpp_cycles", "rtl_tops"]


def test_other_damage(tmp_path):
    with pytest.raises(InputError, match=r"claims\.csv: no such file or folder"):
        claims(tmp_path)
    (tmp_path / "claims.csv").write_bytes(b"key,\xff")
    with pytest.raises(InputError, match=r"claims\.csv: is no UTF-8 text: byte 4 is wrong"):
        claims(tmp_path)
    (tmp_path / "deepbench.csv").mkdir()
    with pytest.raises(InputError, match="is a folder, expected a file"):
        deepbench(tmp_path)


@given(table=st.sampled_from(table_names()), data=st.data())
def test_bytes_changed_at_random_are_read_or_refused(tmp_path_factory, table, data):
    content = bytearray((FOLDER / f"{table}.csv").read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place : place + data.draw(st.integers(0, 40))] = data.draw(st.binary(max_size=8))
    folder = tmp_path_factory.mktemp("published")
    (folder / f"{table}.csv").write_bytes(content)
    try:
        assert READERS[table](folder)
    except InputError as error:
        reported = error.mistakes
    else:
        return
    assert all(each.sentence for each in reported)
    assert reported[0].location.startswith(str(folder))


def test_an_installed_package_finds_its_tables_inside(tmp_path):
    package = tmp_path / "site-packages" / "lstmsim"
    shutil.copytree(FOLDER, package / "_published")
    assert published_folder(package) == package / "_published"
    assert claims(published_folder(package)) == claims()
    assert published_folder(tmp_path / "lstmsim") == tmp_path / "published"
