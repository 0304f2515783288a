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
        (49, 13, 3790, 7789),
        (49, 5, 3370, 2919),
        (20, 20, 1520, 8078),
    ),
    Counted(
        "GRU",
        {"npe": 48, "ep": 4, "vp": 12, "threads": 2, "tail_width": 1},
        (({"cell": "gru", "hidden": 12, "input": 6},),),
        ((5, 2),),
        (62, 3, 6985, 9521),
        (62, 3, 4788, 3168),
        (23, 4, 2856, 10228),
    ),
    Counted(
        "RNN",
        {"npe": 64, "ep": 8, "vp": 8, "threads": 2, "tail_width": 2},
        (({"cell": "rnn", "hidden": 32, "input": 24},),),
        ((6, 3),),
        (72, 4, 6894, 8983),
        (72, 2, 4381, 3770),
        (26, 23, 2157, 9180),
    ),
    Counted(
        "stack of LSTMs, shared formats",
        {"npe": 32, "ep": 2, "vp": 16, "threads": 2, "tail_width": 1},
        (({"cell": "lstm", "hidden": 8, "input": 6}, {"cell": "lstm", "hidden": 12, "input": 8}),),
        ((7, 2),),
        (49, 13, 7027, 7725),
        (49, 5, 4769, 2685),
        (20, 23, 2595, 8205),
        precision=(("formats", "shared"),),
    ),
    Counted(
        "GRU in both directions",
        {"npe": 24, "ep": 4, "vp": 6, "threads": 1, "tail_width": 1},
        (({"cell": "gru", "hidden": 6, "input": 5, "bidirectional": True},),),
        ((5, 2),),
        (38, 3, 4396, 7381),
        (38, 3, 3102, 2601),
        (15, 10, 1597, 7668),
    ),
    Counted(
        "wide numbers",
        {"npe": 64, "ep": 4, "vp": 16, "threads": 2, "tail_width": 1},
        (({"cell": "lstm", "hidden": 10, "input": 9},),),
        ((4, 2),),
        (81, 10, 11092, 14151),
        (81, 10, 6493, 5299),
        (45, 30, 3321, 14511),
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
        (66, 18, 5830, 6454),
        (66, 10, 3893, 2646),
        (32, 19, 2694, 6989),
    ),
    Counted(
        "tables without lines",
        {"npe": 32, "ep": 8, "vp": 4, "threads": 1, "tail_width": 1},
        (({"cell": "lstm", "hidden": 9, "input": 20},),),
        ((5, 1),),
        (44, 13, 3049, 6984),
        (44, 0, 3471, 2922),
        (17, 13, 1444, 7405),
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
        (38, 9, 6519, 7793),
        (38, 3, 4254, 2326),
        (15, 15, 2437, 7956),
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
        (33, 9, 4577, 5705),
        (33, 5, 3042, 1650),
        (14, 15, 1637, 5904),
        precision=(("formats", "shared"),),
        order="step",
    ),
    Counted(
        "dense layers",
        {"npe": 64, "ep": 8, "vp": 8, "threads": 2, "tail_width": 4},
        (({"cell": "dense", "hidden": 24, "input": 32}, {"cell": "dense", "hidden": 16, "input": 24}),),
        ((8, 2),),
        (76, 2, 7718, 9168),
        (76, 0, 4684, 3890),
        (28, 18, 2482, 9591),
    ),
    Counted(
        "narrow numbers, EP 3",
        {"npe": 48, "ep": 3, "vp": 16, "threads": 3, "tail_width": 2},
        (({"cell": "lstm", "hidden": 15, "input": 11},),),
        ((4, 3),),
        (82, 19, 7176, 10119),
        (74, 10, 5562, 3566),
        (33, 20, 2944, 10855),
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
        (33, 5, 4290, 5689),
        (33, 5, 2860, 1726),
        (14, 9, 1712, 6014),
        learnt=True,
    ),
    Counted(
        "LSTM with two lanes (learnt)",
        {"npe": 64, "ep": 4, "vp": 16, "threads": 1, "tail_width": 2},
        (({"cell": "lstm", "hidden": 12, "input": 8},),),
        ((4, 1),),
        (98, 10, 7439, 14142),
        (98, 10, 5828, 5241),
        (39, 10, 3149, 15108),
        learnt=True,
    ),
)
