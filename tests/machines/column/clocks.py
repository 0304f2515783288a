"""A clock model for tests, so that what they ask does not hang on the builds from which the model is made."""

from __future__ import annotations

from lstmsim.machines.rtl import ClockModel

MODEL = ClockModel(
    family="ECP5, speed grade 6",
    multiplier="MULT18X18D",
    tools="tools of a test",
    verilog="0",
    source="a test",
    null=False,
    ns={"constant": 8.0, "log2 threads": 2.0, "convert below 5": 1.0},
    numbers={
        "ep": [2, 4],
        "vp": [4, 8],
        "multipliers": [8, 32],
        "threads": [1, 4],
        "convert": [4, 7],
        "hidden": [8, 32],
        "input": [8, 32],
        "layers": [1, 2],
        "jobs": [1, 16],
        "steps": [4, 64],
        "accumulator_bits": [24, 32],
    },
    words={"cell": ["gru", "lstm", "rnn"], "formats": ["own", "shared"], "shift": ["common", "row"]},
    lanes={"gru": 1, "lstm": 1, "rnn": 2},
    fitted=40,
    held_out=20,
    within=0.9,
    worst=0.2,
    median=0.05,
    null_within=0.5,
    null_worst=0.4,
    null_median=0.15,
    fit_within=0.95,
    fit_worst=0.25,
    pairs=1.12,
)
