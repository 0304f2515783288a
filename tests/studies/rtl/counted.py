"""What Yosys 0.70 counted of generated designs for three families of FPGAs.

`lstmsim fit` is held against it without Yosys.
"""

from __future__ import annotations

from typing import Any

from lstmsim.base.records import record

__all__ = ["DESIGNS", "Counted"]


@record
class Counted:
    """A design, and its counts.

    name: what is special about it.
    core: keys of its only core.
    models: layers of each model.
    jobs: steps of each job and how many such jobs there are, of every model.
    ecp5, xilinx, intel_alm: by family multiplier blocks, block memories, elements of logic, registers.
    learnt: whether the formulas were made with it in sight.
    precision: keys of the precision.
    order: `layer_order` of the models.
    """

    name: str
    core: dict[str, Any]
    models: tuple[tuple[dict[str, Any], ...], ...]
    jobs: tuple[tuple[int, int], ...]
    ecp5: tuple[int, int, int, int]
    xilinx: tuple[int, int, int, int]
    intel_alm: tuple[int, int, int, int]
    learnt: bool = False
    precision: tuple[tuple[str, Any], ...] = ()
    order: str = "layer"


DESIGNS = (
    Counted(
        "LSTM",
        {"npe": 32, "ep": 4, "vp": 8, "threads": 1, "tail_width": 1},
        (({"cell": "lstm", "hidden": 16, "input": 10},),),
        ((6, 1),),
        (49, 13, 3723, 7670),
        (49, 5, 3337, 3398),
        (22, 20, 1422, 7961),
    ),
    Counted(
        "GRU",
        {"npe": 48, "ep": 4, "vp": 12, "threads": 2, "tail_width": 1},
        (({"cell": "gru", "hidden": 12, "input": 6},),),
        ((5, 2),),
        (62, 3, 6671, 9368),
        (62, 3, 5021, 3851),
        (25, 4, 2772, 10078),
    ),
    Counted(
        "RNN",
        {"npe": 64, "ep": 8, "vp": 8, "threads": 2, "tail_width": 2},
        (({"cell": "rnn", "hidden": 32, "input": 24},),),
        ((6, 3),),
        (72, 4, 6757, 8901),
        (72, 2, 4500, 4745),
        (27, 23, 2062, 9101),
    ),
    Counted(
        "stack of LSTMs, shared formats",
        {"npe": 32, "ep": 2, "vp": 16, "threads": 2, "tail_width": 1},
        (({"cell": "lstm", "hidden": 8, "input": 6}, {"cell": "lstm", "hidden": 12, "input": 8}),),
        ((7, 2),),
        (49, 13, 6741, 7555),
        (49, 5, 4997, 3116),
        (22, 23, 2501, 8039),
        precision=(("formats", "shared"),),
    ),
    Counted(
        "GRU in both directions",
        {"npe": 24, "ep": 4, "vp": 6, "threads": 1, "tail_width": 1},
        (({"cell": "gru", "hidden": 6, "input": 5, "bidirectional": True},),),
        ((5, 2),),
        (38, 3, 4309, 7271),
        (38, 3, 3082, 2948),
        (17, 10, 1606, 7560),
    ),
    Counted(
        "wide numbers",
        {"npe": 64, "ep": 4, "vp": 16, "threads": 2, "tail_width": 1},
        (({"cell": "lstm", "hidden": 10, "input": 9},),),
        ((4, 2),),
        (81, 10, 10443, 13967),
        (81, 10, 6662, 6742),
        (45, 30, 3133, 14330),
        precision=(
            ("weight_bits", 12),
            ("vector_bits", 12),
            ("accumulator_bits", 36),
            ("tail_bits", 18),
            ("state_bits", 18),
        ),
    ),
    Counted(
        "short latencies",
        {
            "npe": 32,
            "ep": 4,
            "vp": 8,
            "threads": 2,
            "tail_width": 2,
            "latency": {
                "read": 2,
                "multiply": 2,
                "add": 1,
                "accumulate": 1,
                "convert": 3,
                "activation": 5,
                "elementwise_multiply": 3,
                "elementwise_add": 2,
                "quantize": 3,
                "writeback": 2,
            },
        },
        (({"cell": "lstm", "hidden": 14, "input": 7},),),
        ((5, 3),),
        (66, 18, 5665, 6372),
        (66, 10, 4001, 2561),
        (32, 19, 2603, 6914),
    ),
    Counted(
        "tables without lines",
        {"npe": 32, "ep": 8, "vp": 4, "threads": 1, "tail_width": 1},
        (({"cell": "lstm", "hidden": 9, "input": 20},),),
        ((5, 1),),
        (44, 13, 2954, 6881),
        (44, 0, 3450, 3421),
        (19, 13, 1421, 7304),
        precision=(("activation", "table"), ("activation_entries", 128)),
    ),
    Counted(
        "two models, shared formats, common shifts",
        {"npe": 24, "ep": 2, "vp": 12, "threads": 2, "tail_width": 1},
        (
            ({"cell": "gru", "hidden": 8, "input": 5},),
            ({"cell": "gru", "hidden": 6, "input": 7}, {"cell": "gru", "hidden": 5, "input": 6}),
        ),
        ((4, 1),),
        (38, 9, 6422, 7642),
        (38, 3, 4503, 2755),
        (17, 15, 2365, 7808),
        precision=(("formats", "shared"), ("shift", "common")),
    ),
    Counted(
        "three layers in step order",
        {"npe": 16, "ep": 2, "vp": 8, "threads": 1, "tail_width": 1, "accumulator_banks": 4},
        (
            (
                {"cell": "lstm", "hidden": 6, "input": 4},
                {"cell": "lstm", "hidden": 6, "input": 6},
                {"cell": "lstm", "hidden": 6, "input": 6},
            ),
        ),
        ((5, 2),),
        (33, 9, 4435, 5580),
        (33, 5, 3159, 1870),
        (16, 15, 1613, 5783),
        precision=(("formats", "shared"),),
        order="step",
    ),
    Counted(
        "dense layers",
        {"npe": 64, "ep": 8, "vp": 8, "threads": 2, "tail_width": 4},
        (({"cell": "dense", "hidden": 24, "input": 32}, {"cell": "dense", "hidden": 16, "input": 24}),),
        ((8, 2),),
        (76, 2, 7657, 9054),
        (76, 0, 4792, 4869),
        (30, 18, 2387, 9480),
    ),
    Counted(
        "narrow numbers, EP 3",
        {"npe": 48, "ep": 3, "vp": 16, "threads": 3, "tail_width": 2},
        (({"cell": "lstm", "hidden": 15, "input": 11},),),
        ((4, 3),),
        (82, 19, 6917, 9976),
        (74, 10, 5654, 4022),
        (33, 20, 2799, 10716),
        precision=(
            ("weight_bits", 6),
            ("vector_bits", 6),
            ("accumulator_bits", 22),
            ("multiplier_bits", 12),
            ("tail_bits", 14),
            ("state_bits", 14),
        ),
    ),
    Counted(
        "LSTM (learnt)",
        {"npe": 16, "ep": 2, "vp": 8, "threads": 2, "tail_width": 1},
        (({"cell": "lstm", "hidden": 6, "input": 5},),),
        ((4, 2),),
        (33, 5, 4145, 5559),
        (33, 5, 2968, 1941),
        (16, 9, 1667, 5887),
        learnt=True,
    ),
    Counted(
        "LSTM with two lanes (learnt)",
        {"npe": 64, "ep": 4, "vp": 16, "threads": 1, "tail_width": 2},
        (({"cell": "lstm", "hidden": 12, "input": 8},),),
        ((4, 1),),
        (98, 10, 7112, 13911),
        (98, 10, 5770, 6208),
        (43, 10, 2980, 14879),
        learnt=True,
    ),
)
