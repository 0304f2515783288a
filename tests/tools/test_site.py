"""The reference of the site names everything that there is, and the site builds where Sphinx is installed."""

from __future__ import annotations

import functools
import inspect
import re
import shutil
from pathlib import Path

import pytest

import lstmsim
from lstmsim.base.keys import keys_of
from lstmsim.cli.editors import KINDS
from lstmsim.cli.group import COMMANDS, command_of
from lstmsim.files.scenario.schema import chip_of_kind
from lstmsim.machines.registry import KINDS as MACHINES
from lstmsim.machines.registry import target_of
from lstmsim.program.stall_reasons import CYCLES
from lstmsim.studies.known.keys import chip_keys, file_keys
from tests.studies.simulate.test_pictures import contrast

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="the site is built of the checkout")
site = pytest.importorskip("tools.site")
drawings = pytest.importorskip("tools.drawings")
pages = functools.cache(site.pages)


@pytest.mark.slow
def test_every_command_has_a_page_with_every_option() -> None:
    for name in COMMANDS:
        page = pages()[f"commands/{name}"]
        for option in command_of(name).params:
            assert all(f"`{each}" in page or f"/ {each}" in page for each in option.opts if each.startswith("--"))
        assert f"commands/{name}" in pages()["commands"]


def test_every_kind_of_file_has_a_page_with_every_key() -> None:
    for kind in KINDS:
        assert f"files/{kind}" in pages()["files"]
    for place, _ in file_keys():
        path = place.split()[-1]
        assert f"| `{path.rpartition('.')[2]}` |" in pages()[f"files/{place.split()[0]}"], place
    for place, _ in chip_keys():
        assert f"| `{place.rpartition('.')[2].rpartition(' ')[2]}` |" in pages()["files/chip"], place


def test_a_key_has_meaning_values_default_source_and_example() -> None:
    page = pages()["files/chip"]
    assert "| `ep` | elements in parallel | 1 to 10,000,000 | required | `ep: 16` |" in page
    assert "| `vp` | rows in parallel | 1 to 10,000,000 | npe // ep |" in page
    for kind in MACHINES:
        assert f"## {kind}" in page
        for description in (target_of(kind).core, chip_of_kind(kind)):
            sources = [each.key.source for each in keys_of(description).values()]
            assert all(" ".join(each.split()).split("`")[0][:30].split("_")[0] in page for each in sources if each)


def test_everything_public_and_every_name_of_cycles_is_there() -> None:
    assert all(f"### {name}\n" in pages()["python"] for name in lstmsim.__all__)
    assert all(f"| `{each.name}` |" in pages()["stalls"] for each in CYCLES)


def test_every_public_function_has_an_example() -> None:
    functions = [name for name in lstmsim.__all__ if inspect.isfunction(getattr(lstmsim, name))]
    without = [name for name in functions if ">>>" not in (getattr(lstmsim, name).__doc__ or "")]
    assert without == []


def test_a_page_of_the_index_is_there_and_none_is_left_out() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^((?:docs|reference)/\S+|[A-Z]+)$", index, re.MULTILINE)
    for each in listed:
        known = each.partition("/")[2] in pages() or (ROOT / f"{each}.md").is_file()
        assert known, each
    for folder in ("tutorials", "howto", "explanation"):
        assert all(f"docs/{folder}/{path.stem}" in listed for path in (ROOT / "docs" / folder).glob("*.md"))


def test_drawings_are_up_to_date_and_shown_first_on_a_page() -> None:
    assert drawings.stale() == [], "run `python tools/drawings.py`"
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")]
    for name in drawings.DRAWINGS:
        assert any(re.match(rf"# [^\n]*\n\n!\[[^\]]+\]\(drawings/{name}\.svg\)\n", each) for each in texts), name


@pytest.mark.slow
def test_the_page_of_a_new_machine_is_listed_without_an_edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = ROOT / "docs" / "new_machine.md"
    known = [*site._copied()]
    monkeypatch.setattr(site, "_copied", lambda: known)
    site.lay_out(tmp_path)
    before = (tmp_path / "docs" / "machines.md").read_text(encoding="utf-8")
    assert before == (ROOT / "docs" / "machines.md").read_text(encoding="utf-8")
    files = {path: path.read_bytes() for path in known if path.suffix == ".md"} | {page: b"# New"}
    assert b"\nnew_machine\n" in site._unlisted(files)


@pytest.mark.slow
def test_what_is_no_longer_made_is_removed(tmp_path: Path) -> None:
    site.lay_out(tmp_path)
    stamp = (tmp_path / "index.md").stat().st_mtime_ns
    (tmp_path / "reference" / "old.md").write_text("# old")
    site.lay_out(tmp_path)
    assert not (tmp_path / "reference" / "old.md").exists()
    assert (tmp_path / "index.md").stat().st_mtime_ns == stamp


def test_captions_have_a_level_and_keys_reach_what_scrolls() -> None:
    caption = '<p class="caption" role="heading"><span>Tutorials</span></p>'
    table = '<div class="table-wrapper docutils container"><table></table></div>'
    page = site.accessible(f'{caption}<pre class="a">x</pre>{table}<div class="output text_html"></div>')
    assert '<p class="caption" role="heading" aria-level="2">' in page
    assert page.count('tabindex="0"') == 3
    assert site.accessible(page) == page


def test_code_has_a_contrast_of_4_5() -> None:
    pytest.importorskip("a11y_pygments", reason="colours of code come with the extra docs")
    from pygments.styles import get_style_by_name

    names = re.findall(
        r'^pygments_\w*style = "(.+)"$', (ROOT / "docs/conf.py").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(names) == 2
    for name in names:
        style = get_style_by_name(name)
        colours = {"#" + each["color"] for _, each in style if each["color"]}
        assert all(contrast(each.upper(), style.background_color.upper()) >= 4.5 for each in colours), name


@pytest.mark.filterwarnings("ignore")
def test_a_small_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="the site needs the extra docs: make docs installs it")
    pytest.importorskip("myst_nb", reason="the site needs the extra docs: make docs installs it")
    site.lay_out(tmp_path / "source")
    index = tmp_path / "source" / "index.md"
    for path in (tmp_path / "source").rglob("*.md"):
        if path.relative_to(tmp_path / "source").parts[0] not in ("index.md", "reference"):
            path.unlink()
    shown = sorted(each for each in pages() if "/" not in each)
    index.write_text("\n".join(["# Small", "", "```{toctree}", *(f"reference/{each}" for each in shown), "```"]))
    for path in (tmp_path / "source" / "reference").rglob("*.md"):
        # pages that are left out here are linked to
        path.write_text(re.sub(r"\[([^\]]*)\]\(/docs[^)]*\)", r"\1", path.read_text(encoding="utf-8")))
    shutil.copy(ROOT / "docs" / "conf.py", tmp_path)
    shutil.copytree(ROOT / "docs" / "_static", tmp_path / "_static")
    from sphinx.cmd.build import main

    options = ["-W", "-q", "-c", str(tmp_path), "-D", "nb_execution_mode=off"]
    assert main([*options, str(tmp_path / "source"), str(tmp_path / "html")]) == 0
    assert (tmp_path / "html" / "reference" / "commands" / "simulate.html").is_file()
    assert site._offline(tmp_path / "html") == 0
