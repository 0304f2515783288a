"""The four forms of a validation say the same."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from lstmsim.studies.validate.rows import ClaimRow, Group, Row, Validation
from tests.studies.validate.whole import whole
from tools.readme import page_section, short_table

ROW = Row("chip-a", "task|1", "latency", "cycles", 1000, 1000, 0.0, "a paper, Table 1", "a note")
TOPS = replace(ROW, quantity="throughput", unit="TOPS", published=2.5, simulated=2.5, derived=True)
FAR = Row("chip-b", "task-2", "latency", "ms", 0.5, 0.52, 0.05, "another paper")
CLAIM = ClaimRow("key", "throughput, threads, cores", "much: 2 x", "of a kind", "3 x", "not judged", "a paper")
SMALL = Validation(
    "fast",
    (Group("chip-a", "Chip A", "a", (ROW, TOPS), 1), Group("chip-b", "Chip B", "b", (FAR,), 1)),
    (CLAIM, replace(CLAIM, key="other", topic="not simulated", verdict="not simulated", simulated="")),
)


def wrong() -> Validation:
    group = replace(SMALL.groups[0], rows=(replace(ROW, simulated=1001), TOPS))
    return replace(SMALL, groups=(group, SMALL.groups[1]), claims=(replace(CLAIM, verdict="fails"),))


def test_the_terminal_text() -> None:
    text = SMALL.to_text()
    lines = text.splitlines()
    assert lines[0] == "VALIDATION on the engine fast"
    assert [line.split() for line in lines[3:5]] == [
        ["cycles", "simulated", "error", "TOPS", "simulated", "error"],
        ["task|1", "1,000", "1,000", "0", "2.50", "2.50", "0"],
    ]
    assert lines[5:8] == ["1 of 1 exact in cycles", "source: a paper, Table 1", "note on task|1: a note"]
    assert "1 of 1 within 5 %; mean error 4.00 %, worst task-2, +4.00 %" in lines
    assert lines[-1] == "chip-a 1 of 1 exact; 1 of 1 within 5 %; claims: 1 not judged, 1 not simulated"
    assert "!" not in text


def test_failures_are_marked_and_counted() -> None:
    text = wrong().to_text()
    assert re.search(r"1,000 +1,001 +\+0\.10 % ! ", text)
    assert text.splitlines()[-1] == "chip-a 0 of 1 exact; 1 of 1 within 5 %; claims: 1 fails"


def test_markdown_has_every_row_and_claim() -> None:
    text = SMALL.to_markdown()
    assert "| task\\|1 | 1,000 | 1,000 | 0 | 2.50 | 2.50 | 0 |" in text
    assert "| task-2 | 0.500 | 0.520 | +4.00 % |" in text
    assert "1 of 1 within 5 %; mean error 4.00 %, worst task-2, +4.00 %" in text
    assert "source: another paper" in text
    assert "note on task\\|1: a note" in text
    for line in ("not judged: much: 2 x (key)", "assumed: of a kind", "simulated: 3 x", "other: much: 2 x: of a kind"):
        assert line in text.splitlines()


def test_json_is_plain_and_whole() -> None:
    data = json.loads(json.dumps(wrong().to_dict(), allow_nan=False))
    assert data["schema"] == "lstmsim/validation/1"
    assert data["ok"] is False
    assert data["failures"] == list(wrong().failures)
    row = data["groups"][0]["rows"][0]
    assert (row["published"], row["simulated"], row["ok"], row["band"]) == (1000, 1001, False, 0.0)
    assert row["error"] == 0.001
    assert data["claims"][0]["condition"] == "of a kind"
    assert SMALL.to_dict()["ok"] is True


def test_the_tables_of_pages_have_a_line_for_each_group_and_topic() -> None:
    lines = page_section(SMALL).splitlines()
    assert lines[2] == "| Chip A | 1 of 1 exact in cycles | 0 % | - | - | - |"
    assert lines[3] == "| Chip B | 1 of 1 within 5 % | 4.00 % | task-2, +4.00 % | - | - |"
    assert lines[5:7] == ["* Chip A. Source: a paper, Table 1.", "* Chip B. Source: another paper."]
    assert lines[10].startswith("| throughput, threads, cores | 1 | 1 not judged | ")
    short = short_table(SMALL).splitlines()
    assert short[3] == "| Chip B | 1 of 1 within 5 % | 4.00 % | task-2, +4.00 % | - |"
    assert len(short) == 4


def test_the_null_model_is_in_the_tables_of_pages() -> None:
    (fitted, held_out) = (each for each in whole().groups if each.judgement)
    (row,) = (each for each in short_table(whole()).splitlines() if held_out.title in each)
    assert held_out.judgement is not None
    assert row.endswith(f"| {100 * held_out.judgement.mean(held_out.judgement.null_errors):.2f} % |")
    assert fitted.title in short_table(whole())


def test_the_real_one_ends_in_one_line_of_counts() -> None:
    assert " ".join(whole().to_text().rpartition("\n\n")[2].split()) == (
        "intel-npu-rtl 19 of 19 exact; intel-npu-cpp 19 of 19 exact; 11 of 11 within 5 %; "
        "claims: 8 hold, 13 not judged, 34 not simulated"
    )
    items = [each for each in page_section(whole()).splitlines() if each.startswith("* ")]
    assert len(items) == len(whole().groups) == 4
    assert max(map(len, page_section(whole()).partition("* ")[2].partition("\n\n")[0].splitlines())) <= 100


def test_every_form_says_that_sizes_are_not_shown() -> None:
    changed = replace(
        whole(), groups=tuple(each for each in whole().groups if each.key == "brainwave-held-out"), claims=()
    )
    words = "not evidence of size dependence"
    for text in (changed.to_text(), changed.to_markdown(), page_section(changed).replace("\n ", "")):
        assert words in " ".join(text.split())
        assert "null model" in text
    assert max(map(len, changed.to_text().splitlines())) <= 100
    data = json.loads(json.dumps(changed.to_dict(), allow_nan=False))
    assert data["groups"][0]["null_model"]["evidence_of_size_dependence"] is False
    assert all(row["null_error"] is not None for row in data["groups"][0]["rows"])
