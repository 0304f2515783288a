"""The forms of an explanation: the answer first, no line too long, every figure in the JSON, every word explained."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from lstmsim import Run, run
from lstmsim.analysis.explanations.explanation import MAX_STEPS, Explanation, explain
from lstmsim.analysis.explanations.text import GLOSSARY, explain_json, glossary, words_in
from lstmsim.analysis.report_text import report_text
from lstmsim.machines.column.npu import WORDS as COLUMN
from lstmsim.machines.row.npu import WORDS as ROW
from lstmsim.model.figures import Words
from tests.core_needed import names_with_core

SCENARIOS: dict[str, dict[str, Any]] = {
    "column": {"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 300, "count": 3}]},
    "cores": {"chip": "column-npu-4x16k", "jobs": [{"model": "lstm-1024", "steps": 20, "count": 9, "arrival": 70}]},
    "frames": {"chip": "column-npu-64k", "jobs": [{"model": "gru-512", "steps": 400, "frame_interval": 1000}]},
    "dispatch": {"chip": "brainwave-s10", "jobs": [{"model": "lstm-512", "steps": 10}]},
    "batch": {"chip": "intel-npu-rtl", "jobs": [{"model": "gru-512", "steps": 4, "batch": 4}]},
}
#: Those whose many alternatives take long on the reference engine need the core.
NAMES = names_with_core(SCENARIOS, {"column", "cores"})


@cache
def simulated(name: str) -> tuple[Run, Explanation]:
    result = run(SCENARIOS[name])
    return result, explain(result.scenario, result.program, result.trace)


@pytest.mark.parametrize("name", NAMES)
def test_the_text_fits_and_begins_with_the_answer(name: str) -> None:
    result, explanation = simulated(name)
    text = explanation.to_text()
    assert max(map(len, text.splitlines())) <= 100
    assert text.splitlines()[0] == f"WHY NOT 100 %: utilization is {100 * result.report.utilization:.1f} %"
    assert "% of the makespan" in text.splitlines()[1]
    for share in explanation.shares:
        assert f"{share.name}" in text
        assert f"{share.cycles:,}" in text
    for alternative in explanation.what_if.alternatives:
        assert alternative.name in text
    sections = ("WHAT WOULD SHORTEN IT", "THE CRITICAL PATH", "OFF THE", "AT ITS HEART")
    places = [text.index(f"\n{section}") for section in sections]
    assert places == sorted(places)
    assert "GLOSSARY" not in text
    known = [each for each in explanation.what_if.alternatives if each.cycles is not None]
    pairs = explanation.what_if.pairs
    assert f"{len(known)} changes alone and {len(pairs)} pair{'s' * (len(pairs) > 1)} of them, each simulated" in text
    # no percent sign loses its number at the end of a line
    assert not any(line.lstrip().startswith("%") for line in text.splitlines())


@pytest.mark.parametrize("name", NAMES)
def test_every_word_of_the_tables_is_explained(name: str) -> None:
    result, explanation = simulated(name)
    report = report_text(result.report)
    both = f"{report}\n{explanation.to_text()}"
    words = words_in(both, explanation.words)
    for word in ("useful", *result.report.accounts, "makespan", "utilization", "TOPS", "npe", "ep", "vp", "thread"):
        assert word in words
    listed = glossary(both, explanation.words)
    for word, sentence in words.items():
        assert word in listed
        assert sentence == (explanation.words.get(word, Words()).glossary or GLOSSARY[word])


@pytest.mark.needs_core
def test_the_glossary_has_only_words_that_occur() -> None:
    assert words_in("nothing of the kind") == {}
    assert glossary("nothing of the kind") == ""
    assert list(words_in("decode_mvu busy", ROW)) == ["busy", "mvu"]
    assert list(words_in("decode_mvu busy")) == ["busy"]
    assert list(words_in("the tops of 12 banks; H", COLUMN)) == ["bank"]
    _, explanation = simulated("column")
    assert "serializer" not in glossary(explanation.to_text(), explanation.words)


@pytest.mark.parametrize("name", NAMES)
def test_json_has_every_figure(name: str) -> None:
    _, explanation = simulated(name)
    data = json.loads(json.dumps(explain_json(explanation), allow_nan=False))
    assert data["schema"] == "lstmsim/explanation/2"
    for key in ("shares", "causes"):
        rows = list(data[key].values()) if isinstance(data[key], dict) else data[key]
        assert sum(row["cycles"] for row in rows) == data["makespan_cycles"]
        assert sum(row["share"] for row in rows) == pytest.approx(1)
    assert len(data["path"]) == min(data["path_steps"], MAX_STEPS)
    assert data["path"][0]["start"] == 0
    assert data["path_steps"] > MAX_STEPS or data["path"][-1]["end"] == data["makespan_cycles"]
    assert [each["name"] for each in data["what_if"]["alternatives"]] == [
        each.name for each in explanation.what_if.alternatives
    ]
    assert [each["name"] for each in data["what_if"]["pairs"]] == [each.name for each in explanation.what_if.pairs]
    assert data["what_if"]["pairs_left_out"] == explanation.what_if.pairs_left_out
    assert data["answer"][0].startswith(f"{data['answer'][0].split(' %')[0]} % of the makespan")
    assert data["glossary"]["makespan"] == GLOSSARY["makespan"]


@pytest.mark.slow
@pytest.mark.needs_core
def test_the_same_run_gives_the_same_text_on_both_engines() -> None:
    texts = set()
    for engine in ("fast", "reference"):
        result = run(SCENARIOS["column"], engine=engine)
        texts.add(explain(result.scenario, result.program, result.trace).to_text())
    assert len(texts) == 1
