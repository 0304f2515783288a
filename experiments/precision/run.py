"""Which widths keep real networks' answers?

Three published networks on real inputs, in fixed point against float64. Silero VAD: on how many of 174 frames of
speech, silence and noise does the decision (probability above 0.5) change? g2p-en: how many of 365 English words keep
their phonemes? Resemblyzer: are two sentences of one voice still nearer to each other (cosine) than to another voice?
Axes: weights and vectors of 4 to 10 bits with a scale per row or per tensor, tables or straight pieces of 16 to 1024
entries, a state of 8 to 24 bits, formats and shifts that passes and rows share; everything else as the default
precision.

Run `python experiments/precision/run.py`; `--write` refreshes expected.md beside it; pictures.py draws, and writes all
points as a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from textwrap import wrap

import numpy as np
from numpy.typing import NDArray

from lstmsim.files.catalog import input_files
from lstmsim.files.scenario.numbers import read_frames
from lstmsim.files.scenario.scenario_file import load_model
from lstmsim.importers.files import read_weights
from lstmsim.importers.tensors import read_safetensors
from lstmsim.model.model import ACTIVATIONS, Precision
from lstmsim.model.numerics.accuracy import accuracy
from lstmsim.model.numerics.arithmetic import Arithmetic
from lstmsim.model.numerics.calibration import Range, calibrate
from lstmsim.model.numerics.fixed import fixed_arithmetic, fixed_chip
from lstmsim.model.numerics.golden import float_arithmetic, run_network
from lstmsim.model.numerics.weights import Network, Stimulus
from lstmsim.studies.accuracy.study import Spelling, read_g2p, read_words, spelling, with_bits, words_accuracy

Floats = NDArray[np.float64]

#: Frames, and the files with them.
INPUTS = {
    "silero-vad-16k": (174, ("silero-speech",)),
    "resemblyzer": (160, ("resemblyzer-speech", "resemblyzer-same-voice", "resemblyzer-other-voice")),
}
BITS = range(4, 11)
ENTRIES = (16, 64, 256, 1024)
STATE_BITS = (8, 12, 16, 20, 24)
#: What is shared, in words.
SHARED = {
    ("own", "row"): "formats of each pass, a shift per row",
    ("own", "common"): "formats of each pass, a shift per sum",
    ("shared", "row"): "shared formats, a shift per row",
    ("shared", "common"): "shared formats and shifts",
}
#: Bits of Resemblyzer's weights and vectors, beyond what the others need.
WIDE = ((8, 8), (8, 16), (16, 8), (16, 12), (16, 16))
#: Said of the tables as a whole; the test of this experiment holds it to be true.
ANSWER = [
    "",
    "**Answer.** With a scale per row, 7 bits keep Silero VAD's decisions (but for that one frame) and 99 % of the",
    "words of g2p-en; with a scale per tensor it takes about one bit more. 64 straight pieces are as good as a table",
    "of 1024 entries. A state of 12 bits costs Silero VAD more than 7-bit weights and vectors. Resemblyzer needs 16.",
    "Formats that all passes of a kind of cell share, and shifts that all rows of a sum share, cost none of them its",
    "answer, not even when Silero VAD and Resemblyzer share them.",
]


@dataclass(frozen=True)
class Heard:
    """What Silero VAD gives at one setting.

    sqnr_db: of h.
    changed: frames whose decision changed.
    largest: the largest change of a probability.
    """

    sqnr_db: float
    changed: int
    largest: float


@dataclass(frozen=True)
class Voices:
    """What Resemblyzer gives at one setting.

    sqnr_db: of h.
    same: the cosine of one voice's two sentences.
    other: the larger cosine of these sentences with the other voice.
    kept: the least cosine of a sentence's vector with that of float64.
    """

    sqnr_db: float
    same: float
    other: float
    kept: float


@dataclass(frozen=True)
class Point:
    """What was measured with one setting.

    unchanged: words of g2p-en that keep their phonemes.
    """

    title: str
    heard: Heard
    unchanged: int
    voices: Voices | None = None


#: The points of every axis by its heading.
Points = dict[str, list[Point]]


@cache
def network(name: str) -> Network:
    model = load_model(name)
    return read_weights(model.weights, model)


@cache
def stimuli(name: str) -> tuple[Stimulus, ...]:
    width = network(name).model.layers[0].input
    frames, files = INPUTS[name]
    return tuple(Stimulus(read_frames(input_files()[f"{each}.safetensors"], frames, width)) for each in files)


@cache
def around(name: str) -> tuple[Floats, Floats]:
    """Weight and bias of the layer behind the recurrent ones."""
    tensors = read_safetensors(network(name).model.weights).tensors
    weight, bias = tensors["output.weight"], tensors["output.bias"]
    return weight.read().reshape(weight.shape).astype(np.float64), bias.read().astype(np.float64)


def outputs(name: str, arithmetic: Sequence[Sequence[Arithmetic]]) -> list[Floats]:
    return [run_network(arithmetic, each).output() for each in stimuli(name)]


@cache
def ranges(name: str) -> Sequence[Sequence[Mapping[str, Range]]]:
    return calibrate(network(name), stimuli(name))


def fixed(name: str, precision: Precision, together: bool = False) -> Sequence[Sequence[Arithmetic]]:
    """A network alone on its chip, or on one chip with the other LSTMs."""
    names = tuple(INPUTS) if together else (name,)
    return fixed_chip([(network(each), ranges(each)) for each in names], precision)[names.index(name)]


@cache
def exact(name: str) -> list[Floats]:
    return outputs(name, float_arithmetic(network(name)))


@cache
def spelled() -> Spelling:
    return spelling(read_g2p(), read_words())


def speech(h: Floats) -> Floats:
    """Probability of speech at each frame."""
    weight, bias = around("silero-vad-16k")
    probabilities: Floats = 1 / (1 + np.exp(-(np.maximum(h, 0) @ weight.T + bias)[:, 0]))
    return probabilities


@cache
def heard(precision: Precision, together: bool = False) -> Heard:
    name = "silero-vad-16k"
    (outputs_fixed,) = outputs(name, fixed(name, precision, together))
    (reference,) = exact(name)
    ours, theirs = speech(outputs_fixed), speech(reference)
    changed = int(np.count_nonzero((ours > 0.5) != (theirs > 0.5)))
    return Heard(accuracy(outputs_fixed, reference).sqnr_db, changed, float(np.abs(ours - theirs).max()))


def embedded(h: Floats) -> Floats:
    """The voice's vector, of length 1."""
    weight, bias = around("resemblyzer")
    vector: Floats = np.maximum(weight @ h[-1] + bias, 0)
    return vector / np.linalg.norm(vector)


def compared(frames: list[Floats]) -> Voices:
    """Say what these outputs of Resemblyzer tell of the voices."""
    reference = exact("resemblyzer")
    speech, same, other = (embedded(each) for each in frames)
    kept = min(float(embedded(ours) @ embedded(theirs)) for ours, theirs in zip(frames, reference, strict=True))
    sqnr = accuracy(np.concatenate(frames), np.concatenate(reference)).sqnr_db
    return Voices(sqnr, float(speech @ same), float(max(speech @ other, same @ other)), kept)


@cache
def voices(precision: Precision, together: bool = False) -> Voices:
    name = "resemblyzer"
    return compared(outputs(name, fixed(name, precision, together)))


def rounded_input(bits: int) -> Voices:
    """Run Resemblyzer in float64, except that its input has one scale and `bits` bits."""
    top = (1 << (bits - 1)) - 1
    scale = max(float(each.x.max()) for each in stimuli("resemblyzer")) / top
    inputs = (Stimulus(np.rint(each.x / scale) * scale) for each in stimuli("resemblyzer"))
    arithmetic = float_arithmetic(network("resemblyzer"))
    return compared([run_network(arithmetic, each).output() for each in inputs])


@cache
def unchanged(precision: Precision) -> int:
    words = words_accuracy(spelled(), precision)
    return words.words - len(words.changed)


def point(title: str, precision: Precision, with_voices: bool = False, together: bool = False) -> Point:
    own = voices(precision) if with_voices else None
    return Point(title, heard(precision, together), unchanged(precision), own)


def results(small: bool = False) -> Points:
    """The points of every axis by its heading; `small`: one width."""
    bits = (8,) if small else BITS
    rows = [point(f"{each} bits, per row", with_bits(Precision(), each), with_voices=True) for each in bits]
    axes = {"Width of weights and vectors": rows}
    if small:
        return axes
    tensor = Precision(weight_scale="tensor")
    return axes | {
        "One scale for all rows of a sum": [
            point(f"{each} bits, per tensor", with_bits(tensor, each)) for each in bits
        ],
        "Activation functions": [
            point(f"{kind}, {entries} entries", Precision(activation=kind, activation_entries=entries))
            for kind in ACTIVATIONS
            for entries in ENTRIES
        ],
        "State that only the tail reads": [
            point(f"{bits}-bit state", Precision(state_bits=bits)) for bits in STATE_BITS
        ],
        "What passes and rows share": sharing(),
    }


def sharing() -> list[Point]:
    """Each network alone on its chip (g2p-en has two), then Silero VAD beside Resemblyzer."""
    own = {title: Precision(formats=formats, shift=shift) for (formats, shift), title in SHARED.items()}
    beside = point("the last, with Resemblyzer on the chip", list(own.values())[-1], together=True)
    narrow = {f"8-bit factors, {title}": replace(each, multiplier_bits=8) for title, each in own.items()}
    ends = [list(narrow.items())[index] for index in (0, -1)]
    return [*(point(*each) for each in own.items()), beside, *(point(*each) for each in ends)]


def wide() -> dict[str, Voices]:
    """Resemblyzer with more bits."""
    rows = {}
    for weight, vector in WIDE:
        precision = Precision(weight_bits=weight, vector_bits=vector, accumulator_bits=40)
        rows[f"{weight}-bit weights, {vector}-bit vectors"] = voices(precision)
    for (formats, shift), title in list(SHARED.items())[1:]:
        rows[f"16 and 16 bits, {title}"] = voices(replace(precision, formats=formats, shift=shift))
    precision = replace(precision, formats="shared", shift="common")
    rows["the last, with Silero VAD on the chip"] = voices(precision, together=True)
    return rows | {f"float64, input of {bits} bits": rounded_input(bits) for bits in (8, 12, 16)}


def row(each: Point) -> str:
    own = each.heard
    words = len(spelled().phonemes)
    share = f"{each.unchanged} ({100 * each.unchanged / words:.1f} %)"
    line = f"| {each.title} | {own.sqnr_db:.1f} | {own.changed} | {own.largest:.3f} | {share} |"
    return line if each.voices is None else f"{line} {voices_cells(each.voices)} |"


def voices_cells(own: Voices) -> str:
    return f"{own.sqnr_db:.1f} | {own.same:.2f} / {own.other:.2f} | {own.kept:.2f}"


def summary(axes: Points, more: dict[str, Voices] | None = None) -> str:
    """The tables as Markdown."""
    border = np.abs(speech(exact("silero-vad-16k")[0]) - 0.5).min()
    lines = [
        "# Precision and answers",
        "",
        "Fixed point against float64; 8-bit weights and vectors, a scale per row, 256 straight pieces, 16-bit tail and",
        "state unless said otherwise. Formats are calibrated on the data that is then measured: other data may fare",
        "worse. The reference of the words is how float64 spells them, right or wrong, not a dictionary.",
        "",
        "`dB`: signal to quantisation noise of h. `sides`: frames of 174 on the other side of 0.5; one of them is only",
        f"{border:.4f} away from it in float64. `most`: largest change of a probability. `words`: of 365. `voices`:",
        "cosine of one voice's two sentences / with another voice. `kept`: least cosine of a sentence's vector with",
        "float64's own. No cycle enters, and so no assumed latency.",
    ]
    lines += ANSWER if more is not None else []
    for title, points in axes.items():
        head = ["setting", "Silero dB", "sides", "most", "words"]
        head += ["Resemblyzer dB", "voices", "kept"] if points[0].voices is not None else []
        lines += ["", f"## {title}", "", f"| {' | '.join(head)} |", f"| --- |{' ---: |' * (len(head) - 1)}"]
        lines += [row(each) for each in points]
    if more is not None:
        lines += ["", "## What Resemblyzer asks for", "", *resemblyzer_lines(), ""]
        lines += ["| setting | Resemblyzer dB | voices | kept |", "| --- | ---: | ---: | ---: |"]
        lines += [f"| {title} | {voices_cells(each)} |" for title, each in more.items()]
        lines.append(f"| float64 | | {voices_cells(compared(exact('resemblyzer'))).split(' | ')[1]} | 1.00 |")
    return "\n".join([*lines, ""])


def resemblyzer_lines() -> list[str]:
    """Why it needs so many bits."""
    x = np.concatenate([each.x for each in stimuli("resemblyzer")])
    lost = np.mean(np.abs(x) < x.max() / 127 / 2)
    first = fixed_arithmetic(network("resemblyzer"), stimuli("resemblyzer"), Precision())[0][0]
    largest = {name: [np.abs(first.matrix(gate, name)).max(axis=1) for gate in "ifgo"] for name in ("x", "h")}
    middle = {name: int(np.median(rows)) for name, rows in largest.items()}
    text = (
        f"It reads powers, not their logarithms: the largest is {x.max():.1f}, half are below {np.median(x):.4f}. "
        f"With one scale of 8 bits {100 * lost:.0f} % of them become 0, which alone costs the answer. And x and h meet "
        "in one accumulator, their scales folded into one scale per row of weights. In the first layer x sets it: of "
        f"127 the largest weight of h gets {middle['h']}, that of x {middle['x']} (medians over rows). That 8 bits put "
        "the cosines in the right order is luck: `kept` says that they are cosines of other vectors. Accumulators have "
        "40 bits here."
    )
    return wrap(text, 110)


def text(small: bool = False) -> str:
    """The summary; `small`: of a part of it."""
    return summary(results(small), None if small else wide())


if __name__ == "__main__":
    from experiments.run import main

    main("precision")
