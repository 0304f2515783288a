"""One version with one date wherever it is named, and citations that a reader can use."""

from __future__ import annotations

import re
import tomllib
from datetime import date
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from lstmsim import __version__
from lstmsim.files.catalog import list_chips
from lstmsim.machines.registry import KINDS
from tests.readme.test_readme import ROOT
from tests.readme.test_readme import TEXT as README

pytestmark = pytest.mark.skipif(not README, reason="these files are in the checkout only")
CITING = ROOT / "docs" / "citing.md"


def text(path: str | Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def test_the_version_and_its_date_are_the_same_everywhere() -> None:
    cff = YAML(typ="safe").load(text("CITATION.cff"))
    release = re.findall(r"^## (\S+) - (\S+)$", text("CHANGELOG.md"), re.MULTILINE)[0]
    assert release == (__version__, cff["date-released"].isoformat())
    assert cff["version"] == tomllib.loads(text("pyproject.toml"))["project"]["version"] == __version__
    entry = text(CITING).partition("@software{")[2].partition("\n}\n")[0]
    assert (f"{{{__version__}}}" in entry, f"{{{release[1]}}}" in entry) == (True, True)


def test_the_citation_file_is_complete() -> None:
    cff = YAML(typ="safe").load(text("CITATION.cff"))
    wanted = "cff-version message type title abstract authors version date-released license keywords"
    assert set(wanted.split()) <= set(cff)
    assert all(cff.values())
    assert cff["authors"] == [{"name": "The lstmsim developers"}]
    assert (cff["license"], type(cff["date-released"])) == ("MIT", date)


def test_every_machine_and_preset_has_its_papers_and_every_paper_its_entry() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| (.+?) \| (.+?) \|$", text(CITING), re.MULTILINE)
    assert {kind for kind, _, _ in rows} == set(KINDS)
    assert {name for _, presets, _ in rows for name in re.findall(r"`([^`]+)`", presets)} == {
        each.name for each in list_chips()
    }
    cited = {key for _, _, papers in rows for key in re.findall(r"`([^`]+)`", papers)}
    entries = re.findall(r"^@\w+\{(\w+),$", text(CITING), re.MULTILINE)
    assert sorted(cited | {"lstmsim"}) == sorted(entries)


def test_release_notes_are_short() -> None:
    lines = text("CHANGELOG.md").splitlines()
    assert len(lines) <= 250
    assert max(map(len, lines)) <= 160
