"""Shards joined: all or nothing, and never two results for a point."""

from __future__ import annotations

from pathlib import Path

import pytest

from lstmsim.base.errors import InputError
from lstmsim.studies.sweep.run import merge
from lstmsim.studies.sweep.run import sweep as run_sweep
from tests.studies.sweep.executors import Dying
from tests.studies.sweep.specs import rewritten, spec, table


def test_merge_refuses_what_does_not_belong_together(whole: Path, tmp_path: Path) -> None:
    run_sweep(spec(), tmp_path, jobs=1, shard=(1, 2))
    run_sweep(spec(constraints=[]), tmp_path / "other", jobs=1, shard=(2, 2))
    half, other = tmp_path / "sweep-1-of-2.sqlite", tmp_path / "other" / "sweep-2-of-2.sqlite"
    with pytest.raises(InputError, match="is of another sweep"):
        merge(tmp_path / "all.sqlite", [half, other])
    with pytest.raises(InputError, match="is the output too"):
        merge(half, [half])
    with pytest.raises(InputError, match="no file called"):
        merge(tmp_path / "all.sqlite", [tmp_path / "none.sqlite"])
    rewritten(half, "UPDATE results SET makespan_cycles = makespan_cycles + 1 WHERE status = 'done'")
    with pytest.raises(InputError, match=r"point \d+ has another result there"):
        merge(tmp_path / "both.sqlite", [whole / "sweep.sqlite", half])


@pytest.mark.usefixtures("one_by_one")
def test_merge_takes_what_is_done_over_what_failed(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lstmsim.studies.sweep.run.ProcessExecutor", lambda workers: Dying({5, 8}, []))
    run_sweep(spec(), tmp_path, jobs=2)
    for order in ([tmp_path, whole], [whole, tmp_path]):
        out = tmp_path / f"from-{order[0].name}.sqlite"
        merge(out, [each / "sweep.sqlite" for each in order])
        assert out.with_suffix(".csv").read_bytes() == table(whole)


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    for index in (1, 2, 3):
        run_sweep(spec(), tmp_path, jobs=1, shard=(index, 3))
    return sorted(tmp_path.glob("sweep-*-of-3.sqlite"))


@pytest.mark.slow
@pytest.mark.parametrize("there", [False, True])
def test_a_merge_that_fails_leaves_the_output_as_it_was_and_names_the_shard(
    shards: list[Path], tmp_path: Path, there: bool
) -> None:
    out = tmp_path / "all.sqlite"
    if there:
        merge(out, shards[:1])
    before = sorted((each.name, each.read_bytes()) for each in tmp_path.glob("all*"))
    whole, half = shards[1].read_bytes(), shards[2]
    content = half.read_bytes()
    # The pages of the results: the shard is opened, and its first points are read.
    for start in range(len(content) // 2, len(content), 4096):
        half.write_bytes(content[:start] + b"\xff" * 4096 + content[start + 4096 :])
        with pytest.raises(InputError, match=r"sweep-3-of-3\.sqlite: is damaged"):
            merge(out, shards)
        assert sorted((each.name, each.read_bytes()) for each in tmp_path.glob("all*")) == before
    half.write_bytes(content)
    assert merge(out, shards).points == 60
    assert shards[1].read_bytes() == whole


@pytest.mark.parametrize("name", ["all.csv", "all.parquet", "all", "-", ""])
def test_an_output_that_its_own_table_would_replace_is_refused(
    shards: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError, match=r"expected a file name that ends in \.sqlite"):
        merge(name, shards)
    assert sorted(tmp_path.iterdir()) == before


def test_shards_from_different_folders_and_with_other_words_for_a_reason_belong_together(
    whole: Path, tmp_path: Path
) -> None:
    run_sweep(spec(), tmp_path, jobs=1)
    other = tmp_path / "sweep.sqlite"
    rewritten(other, "UPDATE results SET reason = 'put otherwise' WHERE status = 'infeasible'")
    merge(tmp_path / "all.sqlite", [whole / "sweep.sqlite", other])
    assert table(tmp_path, "all") == table(whole)
