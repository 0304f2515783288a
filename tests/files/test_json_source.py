"""The short cut for JSON gives what the YAML reader gives: data, places of values and keys, raw texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstmsim.files.yaml.source import json_document, parse_document, read_document

TEXTS = st.text(alphabet=[chr(each) for each in range(32, 127)], max_size=8)
LEAVES = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | TEXTS | st.decimals(-9, 9, places=3).map(float)
DATA = st.recursive(
    LEAVES, lambda each: st.lists(each, max_size=4) | st.dictionaries(TEXTS, each, max_size=4), max_leaves=12
)


@given(
    st.dictionaries(TEXTS, DATA, max_size=4) | st.lists(DATA, max_size=4), st.sampled_from([None, 1, 4]), st.booleans()
)
def test_data_and_places_are_those_of_the_yaml_reader(data: Any, indent: int | None, tight: bool) -> None:
    text = json.dumps(data, indent=indent, separators=(",", ":") if tight and indent is None else None)
    document = json_document(text, "a.json")
    if document is None:
        # exponents and backslashes are left to the YAML reader
        assert "\\" in text or "e" in text
        return
    expected = parse_document(text, "a.json")
    assert repr(document.data) == repr(expected.data)
    assert (document.values, document.keys, document.mistakes) == (expected.values, expected.keys, [])


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
            "[NaN]",
        ),
        *('{"a": "\\n"}', '{"a": "\t"}', '{"a": "é"}', "[1] 2", "[1]\n---\n[2]", "{a: 1}", "['a']", "[1, # one\n2]"),
        *('["a\nb"]', "[", "[[", '{"a": [}', "1", '"a"', "", "[truely]", "[1]]", "{]", "[:]", "[,]", "[" * 100_000),
    ],
)
def test_all_else_is_left_to_the_yaml_reader(text: str) -> None:
    assert json_document(text, "a.json") is None


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
