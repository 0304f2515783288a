"""How numbers, names and tables read: each boundary of a wording, and each form of a document, to the letter."""

from __future__ import annotations

import pytest

from lstmsim.report.document import Column, Document, Facts, Section, Text, accounts, advice, facts, grid
from lstmsim.report.figures_text import cut, four_digits, percent, short_name, short_path, three_digits, two_digits
from lstmsim.report.renderings import html, markdown, text
from lstmsim.report.results import plain
from lstmsim.report.tables import WIDTH, folded


@pytest.mark.parametrize(
    ("part", "whole", "said"),
    [(1, 8, "12.5 %"), (8, 8, "100.0 %"), (1, 2000, "0.1 %"), (1, 2001, "<0.1 %"), (0, 8, "none"), (3, 0, "none")],
)
def test_a_part_that_is_there_never_reads_as_0(part: float, whole: float, said: str) -> None:
    assert percent(part, whole, "none") == said


def test_from_where_on_numbers_have_all_digits_before_the_point() -> None:
    assert [three_digits(each) for each in (-99.94, 100, -100.4)] == ["-99.9", "100", "-100"]
    assert [two_digits(each) for each in (99.4, 100, 101)] == ["99", "100", "101"]
    assert [four_digits(each) for each in (9_999.4, 10_000, -10_001)] == ["9999", "10,000", "-10,001"]


def test_names_are_cut_only_where_they_are_too_long() -> None:
    assert [short_name(each, 6) for each in ("sixsix", "sevense", "a\x1bb")] == ["sixsix", "sev...", "a?b"]
    assert [short_path(each, 8) for each in ("eighteig", "abcdefghi", "a\nb")] == ["eighteig", "abc...hi", "a?b"]
    assert [cut(each, 6) for each in ("sixsix", "sevense")] == ["sixsix", "seven…"]


def test_a_cell_says_what_its_column_means() -> None:
    assert Column("a", bar=8).text(0.5) == "####"
    assert Column("a", bar=8).text("none") == "none"
    assert Column("a", form=lambda value: f"<{value}>").text(3) == "<3>"
    assert Column("a", form=lambda value: f"<{value}>", missing="n/a").text(None) == "n/a"
    assert [Column("a", unit="ms", digits=1).text(each) for each in (1.25, 1234.5, 7)] == [
        "1.2 ms",
        "1,234.5 ms",
        "7 ms",
    ]
    assert [Column("a", digits=0).text(each) for each in (2.0, 2.6)] == ["2", "3"]
    # without digits a fraction has three, also where it is whole
    assert Column("a").text(2.0) == "2.00"
    assert [each.name for each in (Column("a"), Column("a", key="b"))] == ["a", "b"]


def test_cycles_by_name_have_their_shares_and_their_sum() -> None:
    found = accounts("cause", {"hazard": 30, "other": 70}, 200)
    assert found.shown == [["hazard", "30", "15.0 %"], ["other", "70", "35.0 %"], ["sum", "100", ""]]
    assert [each.left for each in found.columns] == [True, False, False]


def test_what_is_empty_is_left_out_of_a_document() -> None:
    assert facts(("chip", "v100"), ("clock", ""), width=7) == Facts((("chip", "v100"),), 7)
    assert Section.of("one", None, "", Text("two")).parts == (Text("one"), Text("two"))
    table = grid(["<job"], [["a"]])
    made = Document.of("Done.", None, "", "one", table, Section((), "a title alone"), Section(()))
    assert made.sections == (Section((Text("one"),)), Section((table,)), Section((), "a title alone"))
    assert made.grids == [table]


def test_a_percent_sign_stays_with_its_number_and_further_lines_hang() -> None:
    words = "a" * 96
    assert folded(f"{words[1:]} 10 %") == [f"{words[1:]} 10 %"]
    assert folded(f"{words} 10 %", 2) == [words, "  10 %"]
    assert folded("one\ntwo") == ["one", "two"]


def test_a_wide_table_is_split_with_its_first_columns_repeated_and_none_is_too_wide() -> None:
    # 4 + 2 + 46 + 2 + 46 = 100 characters: two columns beside the name fit to the letter
    columns = ["<name", *("c" * 45 + str(each) for each in range(3))]
    wide = text(Document.of("", grid(columns, [["row1", 1, 2, 3]], repeated=1))).split("\n")
    assert wide[0] == f"name  {'c' * 45}0  {'c' * 45}1"
    assert len(wide[0]) == WIDTH
    assert wide[1].split() == ["row1", "1", "2"]
    assert wide[2] == ""
    assert wide[3] == f"name  {'c' * 45}2"
    assert wide[4].split() == ["row1", "3"]
    # a column more than fits is on the next lines, and one that never fits stands beside the name
    less = text(Document.of("", grid(["<names", *columns[1:]], [["row1", 1, 2, 3]], repeated=1))).split("\n")
    assert [each.split()[-1] for each in less if "c" in each] == [f"{'c' * 45}{each}" for each in range(3)]
    alone = text(Document.of("", grid(["<name", "w" * 120], [["row1", 1]], repeated=1))).split("\n")
    assert alone[0] == f"name  {'w' * 120}"
    # and without it nothing is split
    assert len(text(Document.of("", grid(columns, [["row1", 1, 2, 3]]))).split("\n")) == 2


DOCUMENT = Document.of(
    "One *job*.",
    Section((facts(("chip", "a|b"), ("", "c")), advice("Do\nthis.")), "A title"),
    grid(["<job", "cycles"], [["<a>", 1423]], "A table:"),
    grid(["<x", Column("share", bar=10, digits=1)], [["y", 0.25], ["z", None]], headed=False),
)


def test_a_document_on_the_terminal() -> None:
    assert text(DOCUMENT).split("\n") == [
        "One *job*.",
        "",
        "A title",
        "chip         a|b",
        "             c",
        "Do",
        "this.",
        "",
        "A table:",
        "job  cycles",
        "<a>   1,423",
        "",
        "y  ##",
        "z   -",
    ]


def test_a_document_in_markdown() -> None:
    assert markdown(DOCUMENT).split("\n") == [
        "**One \\*job\\*.**",
        "",
        "### A title",
        "",
        "- **chip**: a\\|b",
        "- c",
        "",
        "> Do",
        "> this.",
        "",
        "A table:",
        "",
        "| job | cycles |",
        "| --- | ---: |",
        "| \\<a\\> | 1,423 |",
        "",
        "|  |  |",
        "| --- | ---: |",
        "| y | ## |",
        "| z | - |",
    ]


def test_a_document_in_html() -> None:
    page = html(DOCUMENT)
    assert page.startswith(
        "<div><p><strong>One *job*.</strong></p><h4>A title</h4>"
        "<dl><dt>chip</dt><dd>a|b</dd><dt></dt><dd>c</dd></dl>"
        '<p class="advice">Do</p><p class="advice">this.</p><table><caption>A table:</caption>'
    )
    assert '<th scope="row" class="l">&lt;a&gt;</th><td>1,423</td>' in page
    # a bar of 8 units for each character, as long as its share; what is missing has none
    assert (
        '<svg width="80" height="10" aria-hidden="true"><rect width="20" height="10" fill="#0072b2"></rect></svg>'
        in page
    )
    assert page.count("<rect") == 1
    assert '<th scope="row" class="l">z</th><td>-</td>' in page
    assert page.count(">share<") == 0


def test_plain_data_have_no_number_that_json_has_not() -> None:
    found = plain({"a": float("inf"), "b": [float("nan"), 0.5, 3], "c": (True, None, "x")})
    assert found == {"a": None, "b": [None, 0.5, 3], "c": [True, None, "x"]}
