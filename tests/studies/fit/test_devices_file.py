"""Tables of devices: their numbers, their sources, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from lstmsim.base.errors import InputError
from lstmsim.files.published import hardware
from lstmsim.studies.fit.device import device, device_files, read_device

ARRIA = device_files()["arria-10-gx-1150"].read_text(encoding="utf-8")


def changed(tmp_path: Path, old: str, new: str) -> Path:
    assert old in ARRIA
    path = tmp_path / "own.yaml"
    path.write_text(ARRIA.replace(old, new), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", device_files())
def test_every_table_reads_and_names_itself_its_sources_and_known_designs(name: str) -> None:
    table = device(name)
    assert table.name == name
    assert set(table.published) <= {row.design for row in hardware()}
    for key in ("multipliers", "packings", "memories", "logic"):
        assert len(table.sources[key]) > 20, key


def test_numbers_of_the_largest_device() -> None:
    table = device("stratix-10-gx-2800")
    memory = table.memories[0]
    assert (table.multipliers, memory.blocks, table.logic.elements) == (5760, 11721, 933120)
    # The fitter prints 240,046,080 bits of block memory.
    assert (memory.blocks or 0) * memory.bits == 240_046_080


def test_a_missing_number_is_none_and_its_source_says_so() -> None:
    table = device("stratix-10-nx-2100")
    assert (table.memories[0].blocks, table.logic.elements) == (None, None)
    assert "no source" in table.sources["memories"]
    assert "no source" in table.sources["logic"]


def test_numbers_of_the_stratix_10_mx() -> None:
    table = device("stratix-10-mx-2100")
    assert (table.multipliers, table.memories[0].blocks, table.logic.elements) == (3960, 6847, 702720)
    assert "no source" not in " ".join(table.sources.values())


def test_the_users_own_file(tmp_path: Path) -> None:
    path = changed(tmp_path, "multipliers: 1518", "multipliers: 99")
    assert device(str(path)).multipliers == 99


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("multipliers: 1518", "multipliers: null", "must say 'no source', because a number of multipliers is null"),
        ("multipliers: 1518", "multipliers: 0", "must be at least 1, got 0"),
        ("multipliers: 1518", "multipliers: many", "must be a whole number, got 'many'"),
        ("widths: [27, 27]", "widths: [27]", "widths"),
        ("multiplier: DSP", "multiplyer: DSP", "unknown key"),
        ("  logic: >-", "  logyc: >-", "unknown key"),
        ("summed: 2", "shares: both", "must be"),
        (
            "register_bits: 4",
            "register_bits: 4, small: {words: 32, bits: 2, elements: 1}",
            "must have `block` or `filled`",
        ),
    ],
)
def test_mistakes_have_their_place(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    path = changed(tmp_path, old, new)
    with pytest.raises(InputError) as caught:
        read_device(path)
    assert sentence in str(caught.value)
    assert f"{path}:" in str(caught.value)


def test_a_number_without_a_source_is_a_mistake(tmp_path: Path) -> None:
    head, _, _ = ARRIA.partition("sources:")
    path = tmp_path / "own.yaml"
    path.write_text(f"{head}sources: {{}}\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_device(path)
    assert len(caught.value.mistakes) == 4


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(InputError, match=r"no device called 'stratix-10-gx-280'.*stratix-10-gx-2800"):
        device("stratix-10-gx-280")
