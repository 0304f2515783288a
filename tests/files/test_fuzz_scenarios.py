"""Scenario files broken in many ways: each loads or is refused with a sentence, nothing else."""

import copy
import json
import os
import random
from pathlib import Path

import pytest

from lstmsim.base.errors import InputError
from lstmsim.files.scenario.scenario_file import load_scenario
from lstmsim.files.yaml.source import parse_document

#: At least 300 by LSTMSIM_EXAMPLES=300; fewer in the usual run.
FILES = int(os.environ.get("LSTMSIM_EXAMPLES", "40"))
SCENARIOS = Path(__file__).parents[2] / "experiments" / "scenarios"
pytestmark = pytest.mark.skipif(not SCENARIOS.is_dir(), reason="the example scenarios are not beside the tests")
VALUES = (
    *(
        0,
        -1,
        1,
        2,
        3,
        10**9,
        10**13,
        2**70,
        0.5,
        1.0,
        1e300,
        float("nan"),
        float("inf"),
        True,
        False,
        None,
        "",
        "12",
        "x",
    ),
    *(
        [],
        {},
        [[]],
        [0, 1],
        {"a": 1},
        "lstm-512",
        "../x.yaml",
        "/",
        "\x00",
        "é\u2028",
        "column",
        "fine",
        "gru",
        "add i i",
        "mean nx c",
        ["x", "m"],
        {"n": ["x"]},
        "*a",
        "!!x",
    ),
)
#: A file with everything about cells and numbers, besides the example scenarios.
WITH_CELLS = """\
chip: column-npu-64k
precision: {weight_bits: 6, activation: table, activation_entries: 64}
cells:
  own:
    source: peepholes, projection and a reduction
    stages:
      - gates: {i: [x, h], n: {nx: [x], nh: [h]}}
      - gates: {p: [m]}
        rows: projection
    nodes:
      ci: multiply c w
      is: add i ci
      it: sigmoid is
      mu: mean nx nh
      nc: subtract nx mu
      ns: add nc nh
      c': multiply it ns
      m: quantize c'
      h': quantize p
    states: {h: h', c: c'}
    parameters: [w]
jobs:
  - model:
      weights: own.safetensors
      layers: [{cell: own, hidden: 8, input: 4, projection: 3}]
    inputs: frames.npy
    steps: 2
"""
KEYS = (
    "ep",
    "vp",
    "cat",
    "tree_inputs",
    "steps",
    "count",
    "core",
    "name",
    "block_order",
    "latency",
    "cells",
    "rows",
    "h'",
    "Ep",
    "",
    "<<",
    "1",
    "é",
)
SPLICES = (
    *(
        "\t",
        "---\n",
        "...\n",
        "- ",
        ": ",
        "[",
        "}",
        "&a ",
        "*a ",
        "!!python/name:os.system ",
        "%YAML 1.1\n",
        "? ",
        "|\n",
    ),
    *(
        "<<: ",
        "\x00",
        "\x07",
        "\ufeff",
        "'",
        '"\\x',
        "#",
        ".nan",
        "0x",
        "!!int ",
        "!!set ",
        "!!binary ",
        "@",
        "`",
        "\r",
        "\x85",
    ),
)


def places(value, path=()):
    yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in pairs:
        yield from places(each, (*path, key))


def at(value, path):
    for part in path:
        value = value[part]
    return value


def change_data(chance, data):
    """Values replaced, keys removed, renamed, added."""
    data = copy.deepcopy(data)
    for _ in range(chance.randint(1, 3)):
        path = chance.choice([each for each in places(data) if each])
        holder, key = at(data, path[:-1]), path[-1]
        how = chance.choice(("value", "value", "value", "remove", "add"))
        if how == "remove":
            del holder[key]
        elif how == "add" and isinstance(holder, dict):
            holder[chance.choice(KEYS)] = chance.choice(VALUES)
        else:
            holder[key] = copy.deepcopy(chance.choice(VALUES))
        if len(data) == 0:
            break
    return json.dumps(data, indent=chance.choice((None, 1)), ensure_ascii=chance.random() < 0.5).encode()


def change_text(chance, text):
    """Characters spliced in, lines removed, doubled, indented, the end cut off."""
    for _ in range(chance.randint(1, 3)):
        position = chance.randrange(len(text) + 1)
        how = chance.randrange(4)
        if how == 0:
            text = text[:position] + chance.choice(SPLICES) + text[position:]
        elif how == 1:
            text = text[:position]
        else:
            lines = text.splitlines(keepends=True) or [""]
            index = chance.randrange(len(lines))
            lines[index] = lines[index] * 2 if how == 2 else " " + lines[index]
            text = "".join(lines)
    return text.encode()


def change_bytes(chance, text):
    """Other encodings and flipped bytes."""
    if chance.random() < 0.4:
        return (text + "# é").encode(chance.choice(("utf-16", "utf-32", "latin-1", "utf-8-sig", "utf-16-be")))
    content = bytearray(text.encode())
    for _ in range(chance.randint(1, 4)):
        content[chance.randrange(len(content))] = chance.randrange(256)
    return bytes(content)


def bomb(chance, text):
    """Aliases of aliases, or an alias that holds itself, or brackets without end."""
    kind = chance.randrange(3)
    if kind == 0:
        width, depth = chance.randint(2, 12), chance.randint(3, 40)
        lines = ["a0: &a0 [1]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]" for n in range(1, depth))]
        return ("\n".join(lines) + "\n" + text).encode()
    if kind == 1:
        return (text + "\nextra: &a {b: [*a]}\n").encode()
    return (text + "\nextra: " + chance.choice("[{") * chance.randint(10, 500)).encode()


def mutated(seed):
    chance = random.Random(seed)
    texts = [*(path.read_text(encoding="utf-8") for path in sorted(SCENARIOS.glob("*.yaml"))), WITH_CELLS, WITH_CELLS]
    text = chance.choice(texts)
    how = chance.choice((change_data, change_data, change_text, change_text, change_bytes, bomb))
    if how is change_data:
        return change_data(chance, parse_document(text, "text").data)
    return how(chance, text)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    errors = {}
    for seed in range(FILES):
        path = folder / f"{seed}.yaml"
        path.write_bytes(mutated(seed))
        try:
            load_scenario(path)
            errors[seed] = None
        except InputError as error:
            errors[seed] = error
    return errors


def test_each_loads_or_is_refused_in_printable_lines(outcomes):
    refused = [error for error in outcomes.values() if error is not None]
    assert FILES * 0.4 < len(refused) < FILES
    for error in refused:
        assert error.mistakes
        for mistake in error.mistakes:
            assert str(mistake).isprintable()
            assert mistake.sentence


def test_the_file_with_cells_is_right_itself():
    (job,) = load_scenario(parse_document(WITH_CELLS, "text").data).jobs
    assert (job.model.layers[0].output, job.inputs) == (3, "frames.npy")
