"""The page on published figures prints what the program does; its commands and files are there."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from lstmsim.cli.group import COMMANDS
from lstmsim.cli.known import GROUPS
from lstmsim.files.published import claims
from lstmsim.studies.validate.run import validate
from tests.readme.test_readme import tool
from tests.studies.validate.whole import whole

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "published.md"
TEXT = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
#: Claims that the tests simulate with small matrices, but for the long version.
LARGE = ("`gale-",)

pytestmark = pytest.mark.skipif(not TEXT, reason="the page is in the checkout only")


def rows(heading: str) -> list[list[str]]:
    part = TEXT.partition(heading)[2].partition("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| ")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def sparse_results() -> str:
    return (ROOT / "experiments" / "sparse_lstm" / "expected.md").read_text(encoding="utf-8")


@pytest.mark.needs_core
def test_claims_are_those_that_a_validation_finds() -> None:
    long = "LSTMSIM_EXAMPLES" in os.environ
    found = validate(["claims"]).claims if long else whole().claims
    written, page = tool().with_claims(TEXT, found).splitlines(), TEXT.splitlines()
    assert len(written) == len(page), "run `make readme`"
    for new, old in zip(written, page, strict=True):
        if not long and new.startswith(tuple(f"| {each}" for each in LARGE)):
            assert new.split("|")[:3] == old.split("|")[:3], "run `make readme`"
        else:
            assert new == old, "run `make readme`"


def test_every_claim_of_these_sources_has_its_row() -> None:
    wanted = {each.key for each in claims() if each.key.startswith(tool().SOURCES)}
    assert {row[0].strip("`") for row in rows("## Claims")} == wanted
    assert {key.split("-")[0] for key in wanted} == {"patent", "que", "renown", "remarn", "gale", "yan", "astitch"}


def test_commands_and_files_are_there() -> None:
    for _, _, _, command, why in rows("## Other figures"):
        assert why
        if command == "-":
            continue
        words = shlex.split(command.strip("`"))
        if words[0] == "lstmsim":
            assert words[1] in COMMANDS
            assert words[1] != "validate" or set(words[2:]) <= set(GROUPS)
        else:
            assert words[0] == "python"
            assert (ROOT / words[-1]).is_file(), command
    for place in re.findall(r"`((?:published|tests|experiments)/[^`]*)`", TEXT):
        assert (ROOT / place).exists(), place


def test_figures_of_experiments_are_those_of_their_results() -> None:
    figures = {row[0]: row[2] for row in rows("## Other figures")}
    (crossover,) = (each for name, each in figures.items() if name.startswith("a sparse LSTM is faster"))
    assert f"sparse wins from {crossover} of zeros" in sparse_results()
    saved = {
        name: [int(each) for each in re.findall(rf"^\| [^|]*, {name} \| [^|]*\((\d+) %\)", sparse_results(), re.M)]
        for name in ("linear", "sampled")
    }
    (deviation,) = (each for name, each in figures.items() if name.startswith("deviation"))
    spans = [f"{min(each)} to {max(each)} % ({name})" for name, each in saved.items()]
    assert deviation == "; ".join(spans)
    fusion = (ROOT / "experiments" / "fusion" / "expected.md").read_text(encoding="utf-8")
    assert "| ln-lstm, one step (here) | 8 | 1 | 88% |" in fusion
    assert "8, 1 for a step of ln-lstm" in figures.values()


def test_what_the_readme_of_validation_says_of_v100_stands_here() -> None:
    page = " ".join((ROOT / "docs/validation.md").read_text(encoding="utf-8").split())
    line = page.partition("| V100 ")[2]
    (factor, error, mean) = re.findall(r"factor of (\d+) \| ([0-9.]+ %) .*? geometric mean (\d+\.\d+)", line)[0]
    assert f"within a factor of {factor}, mean error {error}, geometric mean of the ratios {mean} |" in TEXT
