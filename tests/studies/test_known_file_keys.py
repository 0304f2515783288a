"""`lstmsim list keys` has every key that a file may have, each with what it means."""

from __future__ import annotations

import lstmsim
from lstmsim.base.keys import keys_of
from lstmsim.files.scenario import schema
from lstmsim.studies.known.keys import file_keys


def test_every_key_of_the_files_is_listed_with_its_meaning() -> None:
    known = dict(file_keys())
    for place, entry in (
        ("scenario ", schema.ScenarioFile),
        ("scenario jobs.", schema.JobEntry),
        ("scenario precision.", schema.PrecisionEntry),
        ("model ", schema.ModelFile),
        ("model layers.", schema.LayerEntry),
    ):
        assert {f"{place}{name}" for name in keys_of(entry)} <= set(known)
    assert not [
        name for name, line in known.items() if line.partition(";")[0].strip()[:8] in ("", "default:", "required")
    ]
    assert {"sweep axes", "sweep axes.NAME.values", "scenario jobs.arrival.seed"} <= set(known)
    assert known["scenario precision.weight_bits"].endswith("no zero point; 2 to 16; default: 8")
    listed = {each["name"] for each in lstmsim.list_known("keys")["keys"]}
    assert {*known, "column-npu cores.ep"} <= listed
