"""English words to phonemes with the networks of g2p-en, which come with lstmsim: letters, encoder, decoder, phonemes.

The recurrent layers run in any arithmetic or simulation: `spell` asks a `Runner` to run them. Source of the symbols
and of the greedy decoder: package g2p-en 2.1.0 (Kyubyong Park, Jongseok Kim; Apache-2.0), which uses the networks for
words that are in no dictionary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lstmsim.base.bounded import placed
from lstmsim.base.errors import InputError, Mistake
from lstmsim.files.catalog import find_model
from lstmsim.importers.files import canonical_network
from lstmsim.importers.tensors import floats, read_safetensors
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.numerics.arithmetic import Arithmetic, Array
from lstmsim.model.numerics.golden import float_arithmetic, initial_states, step
from lstmsim.model.numerics.weights import Floats, Network, Stimulus

#: Symbols that the encoder reads: rows of its embedding.
GRAPHEMES = ("<pad>", "<unk>", "</s>", *"abcdefghijklmnopqrstuvwxyz")


def _symbols(sounds: str, stresses: tuple[str, ...] = ("",)) -> list[str]:
    return [f"{sound}{stress}" for sound in sounds.split() for stress in stresses]


#: Symbols that the decoder reads and gives: ARPAbet with stress 0, 1, 2 at vowels, in alphabetical order after the
#: signs.
PHONEMES = (
    *("<pad>", "<unk>", "<s>", "</s>"),
    *sorted(
        chain(
            _symbols("AA AE AH AO AW AY EH ER EY IH IY OW OY UH UW", ("0", "1", "2")),
            _symbols("B CH D DH F G HH JH K L M N NG P R S SH T TH UW V W Y Z ZH"),
        )
    ),
)
#: The decoder stops after so many phonemes even without `</s>`. Source: g2p-en.
MAX_PHONEMES = 20
#: Assumption, because no English word in use is longer.
MAX_LETTERS = 100

#: The phonemes of a word, like `("K", "AE1", "T")`.
Phonemes = tuple[str, ...]

#: Runs one of the networks. Arguments: "encoder" or "decoder", x [steps, input], h before the first step [hidden].
#: Result: h of every step [steps, hidden] as real numbers. The decoder is asked again for a sequence that has grown by
#: one step.
Runner = Callable[[str, Floats, Floats], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class G2p:
    """The two networks and the tensors around them; `InputError` if shapes do not fit.

    encoder: reads letters.
    decoder: reads phonemes.
    letters: embedding of `GRAPHEMES`, [29, input].
    phonemes: embedding of `PHONEMES`, [74, input].
    output_weight, output_bias: judge the decoder's h, [74, hidden] and [74].
    """

    encoder: Network
    decoder: Network
    letters: Floats
    phonemes: Floats
    output_weight: Floats
    output_bias: Floats

    def __post_init__(self) -> None:
        mistakes = []
        for network in (self.encoder, self.decoder):
            layers = network.model.layers
            if len(layers) != 1 or layers[0].bidirectional or layers[0].reverse:
                mistakes.append(Mistake(f"model {network.model.name}", "must have one layer that runs forward"))
        reads, hidden = self.encoder.model.layers[0].input, self.encoder.model.layers[0].width("h")
        given, wanted = self.decoder.model.layers[0].width("h"), self.decoder.model.layers[0].input
        if given != hidden:
            text = f"must have {hidden} units, as many as {self.encoder.model.name}, got {given}"
            mistakes.append(Mistake(f"model {self.decoder.model.name}", text))
        shapes = {
            "letters": (len(GRAPHEMES), reads),
            "phonemes": (len(PHONEMES), wanted),
            "output_weight": (len(PHONEMES), given),
            "output_bias": (len(PHONEMES),),
        }
        for name, shape in shapes.items():
            own_shape = getattr(self, name).shape
            if own_shape != shape:
                mistakes.append(Mistake(name, f"has shape {list(own_shape)}, expected {list(shape)}"))
        if mistakes:
            raise InputError(mistakes)


def letters_of(word: str) -> tuple[int, ...]:
    """Give the rows of the letters' embedding for a word, with the end sign."""
    if len(word) > MAX_LETTERS:
        raise InputError(f"a word of {len(word)} letters, expected at most {MAX_LETTERS}")
    if not any("a" <= letter <= "z" for letter in word.lower()):
        raise InputError(f"{word!r} has no letter from a to z, expected an English word")
    rows = {symbol: row for row, symbol in enumerate(GRAPHEMES)}
    return (*(rows.get(letter, rows["<unk>"]) for letter in word.lower()), rows["</s>"])


def spell(g2p: G2p, word: str, runner: Runner) -> Phonemes:
    """Spell a word: the likeliest phoneme at each step, until the end sign or `MAX_PHONEMES`.

    The decoder runs from its start for every further phoneme, so that a runner needs no memory between two calls.
    """
    start = np.zeros(g2p.encoder.model.layers[0].width("h"))
    initial = runner("encoder", g2p.letters[list(letters_of(word))], start)[-1]
    rows = [PHONEMES.index("<s>")]
    while len(rows) <= MAX_PHONEMES:
        h = runner("decoder", g2p.phonemes[rows], initial)[-1]
        row = int(np.argmax(g2p.output_weight @ h + g2p.output_bias))
        if PHONEMES[row] == "</s>":
            break
        rows.append(row)
    return tuple(PHONEMES[row] for row in rows[1:])


def arithmetic_runner(encoder: Arithmetic, decoder: Arithmetic) -> Runner:
    """Make a runner of the golden model in any arithmetic, float or fixed point.

    The runner remembers the states after the sequences that it ran last. A sequence that has grown costs only its new
    steps.
    """
    passes = {"encoder": encoder, "decoder": decoder}

    @lru_cache(maxsize=4 * MAX_LETTERS)
    def states(which: str, initial: bytes, x: tuple[bytes, ...]) -> dict[str, Array]:
        arithmetic = passes[which]
        if not x:
            stimulus = Stimulus(np.zeros((0, arithmetic.layer.input)), {(0, 0): {"h": np.frombuffer(initial)}})
            return initial_states(arithmetic, stimulus, 0, 0)
        return step(arithmetic, arithmetic.encode(np.frombuffer(x[-1])), states(which, initial, x[:-1]))

    def run(which: str, x: Floats, initial: Floats) -> NDArray[np.float64]:
        start = np.asarray(initial, np.float64).tobytes()
        rows = tuple(np.asarray(row, np.float64).tobytes() for row in x)
        h = [states(which, start, rows[:count])["h"] for count in range(1, len(rows) + 1)]
        return passes[which].decode("h", np.array(h))

    return run


def golden_runner(g2p: G2p, dtype: DTypeLike = np.float64) -> Runner:
    """Make a runner of the golden model in floating point; dtype: the type of all numbers."""
    return arithmetic_runner(float_arithmetic(g2p.encoder, dtype)[0][0], float_arithmetic(g2p.decoder, dtype)[0][0])


_UNITS = 256


def read_g2p(folder: Path | None = None) -> G2p:
    """Read the speller from `g2p-en-encoder.safetensors` and `g2p-en-decoder.safetensors`."""
    folder = folder or find_model("g2p-en-encoder").parent / "weights"
    encoder, around_encoder = _part(folder, "encoder", {"embedding": (len(GRAPHEMES), _UNITS)})
    shapes = {
        "embedding": (len(PHONEMES), _UNITS),
        "output.weight": (len(PHONEMES), _UNITS),
        "output.bias": (len(PHONEMES),),
    }
    decoder, around = _part(folder, "decoder", shapes)
    return G2p(
        encoder,
        decoder,
        around_encoder["embedding"],
        around["embedding"],
        around["output.weight"],
        around["output.bias"],
    )


def _part(folder: Path, name: str, shapes: dict[str, tuple[int, ...]]) -> tuple[Network, dict[str, Floats]]:
    """One network, and the tensors beside it in its file."""
    path = folder / f"g2p-en-{name}.safetensors"
    tensors = read_safetensors(path).tensors
    model = Model(f"g2p-en-{name}", (Layer(cell("gru"), _UNITS, _UNITS),), weights=str(path))
    missing = [key for key in shapes if key not in tensors]
    try:
        if missing:
            raise InputError(f"lacks the tensor {', '.join(missing)}")
        return canonical_network(tensors, model), floats(tensors, shapes)
    except InputError as error:
        raise placed(error, str(path)) from None
