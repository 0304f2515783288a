"""The reader of plain YAML gives what the YAML library gives: data, places of values and keys, raw texts."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstmsim.files.catalog import chip_files, model_files
from lstmsim.files.yaml.full import full_document
from lstmsim.files.yaml.plain import plain_document
from lstmsim.files.yaml.source import read_document
from tests.strategies import examples

TEXTS = st.text(alphabet=[chr(each) for each in range(32, 127)], max_size=8)
LEAVES = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | TEXTS | st.decimals(-9, 9, places=3).map(float)
DATA = st.recursive(
    LEAVES, lambda each: st.lists(each, max_size=4) | st.dictionaries(TEXTS, each, max_size=4), max_leaves=12
)

#: Plain texts whose edits are read by both readers; most edits are still YAML, of either kind.
PLAIN = [
    "a: 1\nb:\n  - x\n  - {c: 1, d: [e, f g]}\n  - k: v\n    l: w\nz: >-\n  one two\n  three\ny: end\n",
    'a: [1, 2, # c\n  3.5]\nb: ../x/y.z # foo\n\n# more\nc:\n  {x: true,\n y: "two # words"}\n',
    "list:\n  -   a: a:b c\n      b: word - b, [c] {d}\n  -   27x18 of two\n",
]
PIECES = [
    *(
        " ",
        "  ",
        "\n",
        "\n  ",
        ":",
        ": ",
        "- ",
        "#",
        " #",
        "{",
        "}",
        "[",
        "]",
        ",",
        ", ",
        "'",
        '"',
        "a",
        "b: c",
        "1",
        "-",
    ),
    *("1.5", "true", "True", "no", "~", ">-", "|", "&", "*", "!", "%", "?", "---", "<<", ".", "../", "0x1", "1e5"),
    *("_", "=", "\\", "\t", "é", "01", "+", "(", "\n\n", "\n#c\n", ".5", ".inf", "2020-01-01", "12:30", "\n    "),
]


def same_or_left(text: str) -> bool:
    """Whether a text is plain; then both readers take it alike."""
    document = plain_document(text, "a.yaml")
    if document is None:
        return False
    expected = full_document(text, "a.yaml")
    assert repr(document.data) == repr(expected.data), text
    assert (document.values, document.keys, document.mistakes) == (expected.values, expected.keys, expected.mistakes)
    return True


@given(
    st.dictionaries(TEXTS, DATA, max_size=4) | st.lists(DATA, max_size=4), st.sampled_from([None, 1, 4]), st.booleans()
)
def test_json_is_read_as_the_library_reads_it(data: Any, indent: int | None, tight: bool) -> None:
    text = json.dumps(data, indent=indent, separators=(",", ":") if tight and indent is None else None)
    # exponents, backslashes, and keys that YAML takes for other values are left to the library
    assert same_or_left(text) or "\\" in text or "e" in text.lower()


@pytest.mark.parametrize("number", range(len(PLAIN)))
def test_edited_texts_are_read_as_the_library_reads_them_or_left(number: int) -> None:
    draw, plain = random.Random(number), 0
    for _ in range(examples(240)):
        text = PLAIN[number]
        for _ in range(draw.randint(1, 3)):
            place = draw.randrange(len(text) + 1)
            text = text[:place] + draw.choice([draw.choice(PIECES), ""]) + text[place + draw.randint(0, 2) :]
        plain += same_or_left(text)
    assert same_or_left(PLAIN[number])
    assert plain > 10


@pytest.mark.parametrize("text", ["3", "-0.5", "sjf", "true", "null", "a:b c - d", "../x/y.z", '"a: #b"', "27x18"])
def test_a_value_alone_is_plain(text: str) -> None:
    assert same_or_left(text)
    for piece in PIECES:
        same_or_left(text + piece)
        same_or_left(piece + text)


def test_what_comes_with_lstmsim_is_plain() -> None:
    for path in [*chip_files().values(), *model_files().values()]:
        assert same_or_left(path.read_text(encoding="utf-8")), path


@pytest.mark.parametrize(
    "text",
    [
        *(
            '{"a": 1, "a": 2}',
            '{"a": 1,}',
            "[1,]",
            '{"a" 1}',
            "[1 2]",
            "[01]",
            "[1e5]",
            "[.5]",
            "[1.]",
            "[+1]",
            "[.inf]",
        ),
        *('{"a": "\\n"}', '{"a": "\t"}', '{"a": "é"}', "[1] 2", "[1]\n---\n[2]", "{a:1}", "['a']", "{a\n: 1}"),
        *('["a\nb"]', "[", "[[", '{"a": [}', "1 # c", '"a" b', "", "[?a]", "[1]]", "{]", "[:]", "[,]", "[" * 100_000),
        *(
            "a: True",
            "a:",
            "a: b: c",
            "a: b\n  c",
            "a: 1\na: 2",
            "a: &b 1",
            "a: !!str 1",
            "null: 1",
            "a: 010",
            "a: |\n  b",
        ),
        *(
            "a: >-\n  b\n\n  c",
            "a: >-\n  b\n    # c",
            "a: >-\n  b\n    \n",
            "a: >-\nb: 1",
            "a:\n- b",
            "%YAML 1.1\n---\na: 1",
        ),
        *("a: 1\n b: 2", " a: 1", "a:\n    b: 1\n  c: 2", "- a", "a: 1_000", "a: 2020-01-01", "a: 'b'", "<<: {a: 1}"),
    ],
)
def test_all_else_is_left_to_the_library(text: str) -> None:
    assert plain_document(text, "a.yaml") is None


def test_a_document_that_is_kept_is_not_changed_by_who_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("cores: [{ep: 4}]\nname: a\nname: b\n")
    one, first_mistakes = read_document(path), list(read_document(path).mistakes)
    assert first_mistakes
    one.data["cores"][0]["ep"] = 8
    one.mistakes.clear()
    again = read_document(path)
    assert (again.data["cores"], again.mistakes) == ([{"ep": 4}], first_mistakes)
    path.write_text("cores: []\n")
    assert read_document(path).data == {"cores": []}
