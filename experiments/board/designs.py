"""The designs that are built: scenarios for a board with an ECP5-85, and how often a frame comes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

#: The board.
BOARD = "ulx3s-85f"
#: The clock that the PLL is asked for, in MHz: what the placed design must reach.
CLOCK_MHZ = 60
#: Latencies with which no path of the adapter has more than one multiplier or one adder (docs/rtl.md section 8); the
#: others, `read` and `multiply` among them, are the defaults, which have all their registers.
LATENCY = {"convert": 7}
_PRECISION = {"formats": "shared", "shift": "common"}


@dataclass(frozen=True)
class Design:
    """A scenario for the board.

    name: in the files and tables.
    title: what it is.
    scenario: its keys.
    frame_ms: time from one frame to the next.
    options: further arguments of `lstmsim.run_rtl`.
    source: where the sizes come from; empty: chosen here.
    """

    name: str
    title: str
    scenario: dict[str, Any]
    frame_ms: float
    options: dict[str, Any] = field(default_factory=dict)
    source: str = ""


def _scenario(name: str, jobs: list[dict[str, Any]], **core: Any) -> dict[str, Any]:
    cores = [{**core, "latency": LATENCY}]
    chip = {"kind": "column-npu", "name": name, "frequency_mhz": CLOCK_MHZ, "cores": cores}
    return {"name": name, "chip": chip, "jobs": jobs, "precision": _PRECISION}


def _lstm(name: str, hidden: int, inputs: int) -> dict[str, Any]:
    return {"name": name, "layers": [{"cell": "lstm", "hidden": hidden, "input": inputs}]}


DESIGNS = (
    Design(
        "two-lstms",
        "two LSTMs at once, 32/16 and 24/12, on two threads",
        _scenario(
            "two-lstms",
            [
                {"name": "a", "model": _lstm("a", 32, 16), "steps": 20},
                {"name": "b", "model": _lstm("b", 24, 12), "steps": 20},
            ],
            npe=16,
            ep=2,
            vp=8,
            threads=2,
            tail_width=1,
        ),
        10.0,
        {"random_weights": 0},
    ),
    Design(
        "keywords",
        "keyword spotting, an LSTM of 118 units over 10 coefficients, one second",
        _scenario("keywords", [{"model": _lstm("keywords", 118, 10), "steps": 49}], npe=16, ep=2, vp=8, tail_width=1),
        20.0,
        {"random_weights": 0},
        # of a second in windows of 40 ms there are 49
        "`Basic_LSTM1` in train_commands.txt of github.com/ARM-software/ML-KWS-for-MCU, the code of Hello Edge "
        "(arXiv:1711.07128): model_size_info 118, dct_coefficient_count 10, window_stride_ms 20, window_size_ms 40",
    ),
    Design(
        "silero-vad",
        "Silero VAD, its own weights, 174 frames of speech",
        _scenario(
            "silero-vad",
            [{"model": "silero-vad-16k", "steps": 174, "inputs": "silero-speech.safetensors"}],
            npe=32,
            ep=2,
            vp=16,
            tail_width=2,
        ),
        32.0,
    ),
)
