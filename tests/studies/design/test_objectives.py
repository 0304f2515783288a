"""What is sought beside cycles: the share of a device, energy, both together with cycles; and the space it is in."""

from __future__ import annotations

from typing import Any

import pytest

import lstmsim
from lstmsim.base.errors import InputError
from lstmsim.studies.design.result import Design
from lstmsim.studies.design.space import space_of

C = "chip.cores.0"
BASE: dict[str, Any] = {
    "name": "one",
    "chip": "column-npu-16k",
    "jobs": [{"name": "a", "model": "lstm-256", "steps": 5}],
}
AXES = {f"{C}.npe": [1024, 2048, 4096], f"{C}.ep": [8, 16]}
FIXED = [f"{C}.vp=null", f"{C}.tree_inputs=null", f"{C}.cat=1", f"{C}.tail_width=64"]


def least(*names: str) -> Design:
    return lstmsim.design(BASE, "arria-10-gx-1150", axes=AXES, overrides=FIXED, jobs=1, minimise=names)


def test_the_least_share_of_a_device_is_that_of_its_fit() -> None:
    found = least("share")
    (share,) = found.best[0].objective
    assert [each.values[f"{C}.npe"] for each in found.best] == [1024, 1024]
    assert found.equal == 2
    assert found.best[0].fit == f"fits: DSP {100 * share:.0f} % used"


def test_a_front_of_cycles_and_share_has_the_numbers_of_both() -> None:
    found = least("cycles", "share")
    smallest = least("share").best[0]
    fast, small = found.best
    assert small.objective[1] == smallest.objective[0] < fast.objective[1] < 1
    for each in found.best:
        values = [f"{key}={value}" for key, value in each.values.items()]
        assert each.objective[0] == lstmsim.simulate(BASE, overrides=[*FIXED, *values]).makespan_cycles
        assert each.fit == f"fits: DSP {100 * each.objective[1]:.0f} % used"
    # how many are equal is said of one objective only
    assert found.equal == 0


def test_the_least_energy_is_no_share() -> None:
    (energy,) = least("energy_j").best[0].objective
    assert 0 < energy < 1e-4


def test_unequal_cores_have_no_space_of_their_own() -> None:
    core = {"npe": 1024, "ep": 8, "vp": 128}
    chip = {"kind": "column-npu", "name": "two", "frequency_mhz": 250, "cores": [core, core | {"tail_width": 16}]}
    with pytest.raises(InputError, match="axes: the 2 cores of chip two are not equal: name at least one key"):
        lstmsim.design({**BASE, "chip": chip}, "none", jobs=1)


def test_columns_have_names_of_their_own() -> None:
    core = {"npe": 1024, "ep": 8, "vp": None, "count": 1}
    chip = {"kind": "column-npu", "name": "two", "frequency_mhz": 250, "cores": [core, core]}
    # `ep` of the second core would be the same name, and `1_ep` is no name
    axes = {f"{C}.ep": [8, 16], "chip.cores.1.ep": [8, 16], f"{C}.latency.add": [1, 2]}
    space = space_of({**BASE, "chip": chip}, axes, [])
    assert [each.name for each in space.axes] == ["ep", "cores_1_ep", "add"]
    assert [space.keys[each.name] for each in space.axes] == list(axes)


def test_where_nothing_is_found_no_design_rejects_requests() -> None:
    found = lstmsim.design(BASE, "none", axes={f"{C}.ep": [8, 16]}, minimise=("npe",), bound_ms=0.001, jobs=1)
    assert found.best == ()
    assert not [each for each in found.remarks if "rejects" in each]
