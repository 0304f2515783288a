"""What `lstmsim gemm` refuses, and in which sentence."""

from __future__ import annotations

import re

import pytest

from tests.cli.runner import call

THREADS = "--threads: must be a whole number from 1 to 64, the cores of epyc-7742"
#: Arguments, and how the message begins.
WRONG = {
    ("0", "-5", "x"): "M: must be at least 1, got 0\nN: must be at least 1, got -5\n"
    "K: must be a whole number from 1 to 1000000, got 'x'\n",
    ("1e3", "8", "8"): "M: must be a whole number from 1 to 1000000, got '1e3'",
    ("8", "8", "99999999999999999999999"): "K: must be at most 1000000, got 99999999999999999999999",
    ("1000000", "1000000", "2"): "sizes: 1,000,000 x 1,000,000 x 2: C has 1,000,000,000,000 elements, at most",
    ("16000", "16000", "16000"): "sizes: 16000 x 16000 x 16000 touches about ",
    (): "M: is missing: give M, N and K, or a model",
    ("8", "8", "8", "--model", "lstm-512"): "M: is given, and a model too: give the one or the other",
    ("8", "8", "8", "--steps", "3"): "--steps: is for a product of a model's layer: give a model too",
    (
        "--model",
        "lstm-512",
        "--steps",
        "25",
    ): "--steps: one time step has none: leave it out, or ask for the projection",
    ("--model", "lstm-51"): "Error: no model called 'lstm-51'; did you mean 'lstm-512'?",
    (
        "8",
        "8",
        "8",
        "--threads",
        "65",
    ): "--threads: must be a whole number from 1 to 64, the cores of epyc-7742, got 65",
    ("8", "8", "8", "--threads", "0"): f"{THREADS}, got 0",
    ("8", "8", "8", "--threads", "1_0"): f"{THREADS}, got '1_0'",
    # an empty variable of a shell is not all cores
    ("8", "8", "8", "--threads", ""): f"{THREADS}, got ''",
    ("8", "8", "8", "--threads", "4,"): f"{THREADS}, got '4,'",
    ("8", "8", "8", "--threads", "4,0"): f"{THREADS}, got 0",
    ("8", "8", "8", "--chip", "edge"): "chip edge: its machine has no threads for matrix products; epyc-7742 and xeon",
    ("8", "8", "8", "--chip", "epic-7742"): "Error: no chip called 'epic-7742'; did you mean 'epyc-7742'?",
    ("8", "8", "8", "--set", "trafic=3"): "--set trafic: is no parameter of the planner; did you mean 'traffic'?; it",
    ("8", "8", "8", "--set", "traffic=-0.5"): "traffic: must be at least 0, got -0.5",
    ("8", "8", "8", "--caches", "hot"): "--caches: must be cold or warm, got 'hot'",
    ("8", "8", "8", "--relief", "bth"): "--relief: must be plan, none, sub, buffer or both, got 'bth'; did",
    ("8", "8", "8", "--cut", "8x8"): "--cut: must be KIND:p_m x p_n x p_k without spaces, like MK:4x1x16, or with",
    ("8", "8", "8", "--cut", "MKK:1x1x8"): "cut MKK:1x1x8: 'MKK' must be MN, MK, NK or MNK; did you mean 'MK'?",
    ("8", "8", "8", "--cut", "MK:2x2x0"): "cut MK:2x2x0: MK leaves N whole, so p_n must be 1, got 2; MNK cuts all "
    "three\ncut MK:2x2x0: p_k must be at least 1, got 0",
    (
        "8",
        "8",
        "8",
        "--threads",
        "8",
        "--cut",
        "MK:2x1x2",
    ): "--cut: 2 x 1 x 2 parts are for 4 threads, and there are 8 threads",
    ("8", "8", "8", "--cut", "MK:2x1x4:2x8x2"): "mb: 2 parts of 2 rows do not hold all 8 rows; at least 4 rows a part",
    ("8", "8", "8", "--cut", "MK:2x1x4:4x9x2"): "nb: must be at most 8, which is all of the product, got 9",
    ("8", "8", "8", "--trace-window", "1:2"): "--trace-window: only with --trace",
    ("8", "8", "8", "--output", "c.txt"): "--output c.txt: expected a file name that ends in .npy",
}


@pytest.mark.slow
@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_a_mistake_is_a_sentence(arguments: tuple[str, ...]) -> None:
    called = call("gemm", *arguments)
    assert (called.exit_code, called.stdout) == (2, "")
    assert called.stderr.startswith(WRONG[arguments]), called.stderr
    assert "expected M, N and K, or --model; got 2 sizes: 8 8" in call("gemm", "8", "8").stderr


def test_a_misspelt_option_has_the_nearest_one() -> None:
    # releases of click before 8.3 have other signs
    said = call("gemm", "--modle", "x").stderr
    assert re.search(r"Error: No such option:? '?--modle'?\.? Did you mean '?--model'?\?", said), said
