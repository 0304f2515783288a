"""What a change says of itself."""

from __future__ import annotations

from lstmsim.machines.change import detail_of, halved
from lstmsim.machines.column.npu import ColumnCore, Latency


def test_halves_that_are_rounded_up_are_named() -> None:
    def detail(**cycles: int) -> str:
        core = ColumnCore(4096, 16, 256, latency=Latency(**cycles))
        half = Latency(**halved(core.latency))
        return detail_of([(core, {"latency": half})], unreported=("latency",))

    even = {name: 2 * cycles for name, cycles in vars(Latency()).items() if cycles is not None}
    assert detail(**even) == ""
    assert detail(**even | {"accumulate": 3}) == "rounded up, like 3 -> 2"
    assert detail(**even | {"accumulate": 3, "add": 1, "read": 31}) == "rounded up, like 3 -> 2 and 31 -> 16"
    assert detail(**even | {"add": 1}) == "1 stays 1"
