"""Files of arrivals that say for whom each row is: routed by job and tenant, with steps; public layouts; mistakes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from lstmsim.base.errors import InputError
from lstmsim.files.scenario.arrival_file import Wanted, read_arrivals, read_lengths
from lstmsim.files.scenario.request_schema import OWN_STEPS, Measure
from lstmsim.files.scenario.requests import load_requests
from lstmsim.files.scenario.scenario_file import load_scenario
from tests.strategies import examples

CHIP = {"kind": "column-npu", "frequency_mhz": 100, "cores": [{"npe": 64, "ep": 4, "vp": 16, "threads": 2}]}
MODEL = {"layers": [{"cell": "rnn", "hidden": 16, "input": 16}]}
TRACE = """\
arrival_cycles,job,tenant,steps
0,asr,ann,10
5,tts,bob,20

7,asr,bob,5
7,asr,ann,7
"""
LLM = """\
TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:46.6805900,30,0
2023-11-16 18:15:47.6805930,879,55
"""
FUNCTIONS = """\
app,func,end_timestamp,duration
a1,f1,5160.142570018768,0.134
a1,f2,5160.2,0.9
a2,f1,5161.280997037888,0.013
"""


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(TRACE)
    Path("llm.csv").write_text(LLM)
    Path("functions.txt").write_text(FUNCTIONS)


def entry(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "model": MODEL, **more}


def scenario(*jobs: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"chip": CHIP, "arrivals": {"path": "t.csv"}, "jobs": list(jobs), **more}


def rows(data: dict[str, Any]) -> list[tuple[str, int, int, str]]:
    """Name, arrival, steps and tenant of each job; the stream of requests has the same."""
    jobs = load_scenario(data).jobs
    requests = load_requests(data)
    templates = requests.scenario.jobs
    names = [name for name, _ in requests.tenants]
    coming = [
        (arrival, templates[template].steps, names[tenant])
        for batch in requests.coming
        for arrival, template, _, tenant in zip(*(column.tolist() for column in batch), strict=True)
    ]
    assert coming == [(job.arrival, job.steps, job.tenant) for job in sorted(jobs, key=lambda job: job.arrival)]
    assert names == list(dict.fromkeys(job.tenant for job in jobs))
    return [(job.name, job.arrival, job.steps, job.tenant) for job in jobs]


def test_one_trace_drives_a_whole_scenario() -> None:
    assert rows(scenario(entry("tts"), entry("asr"))) == [
        ("tts", 5, 20, "tts/bob"),
        ("asr #1", 0, 10, "asr/ann"),
        ("asr #2", 7, 5, "asr/bob"),
        ("asr #3", 7, 7, "asr/ann"),
    ]
    # an entry's own steps go before those of the rows, `count` takes the first of its rows
    assert rows(scenario(entry("tts", steps=3), entry("asr", count=2)))[:2] == [
        ("tts", 5, 3, "tts/bob"),
        ("asr #1", 0, 10, "asr/ann"),
    ]
    # steps that its model states do not
    assert rows(scenario(entry("tts"), entry("asr", model={**MODEL, "steps": 99})))[1][2] == 10
    # others may come as they like
    mixed = rows(scenario(entry("tts"), entry("asr"), entry("own", steps=1, arrival=3)))
    assert mixed[-1] == ("own", 3, 1, "own")


def test_an_entry_may_pick_its_rows_itself() -> None:
    def file(**more: Any) -> dict[str, Any]:
        return {"arrival": {"kind": "file", "path": "t.csv", **more}}

    jobs = [entry("a", **file(job="tts")), entry("b", **file(job="asr", speedup=2), steps=1), entry("c", **file())]
    assert rows({"chip": CHIP, "jobs": jobs}) == [
        ("a", 5, 20, "a/bob"),
        *(("b #1", 0, 1, "b/ann"), ("b #2", 3, 1, "b/bob"), ("b #3", 3, 1, "b/ann")),
        *(("c #1", 0, 10, "c/ann"), ("c #2", 5, 20, "c/bob"), ("c #3", 7, 5, "c/bob"), ("c #4", 7, 7, "c/ann")),
    ]
    assert [each[1] for each in rows({"chip": CHIP, "jobs": [entry("c", **file(rows=2))]})] == [0, 5]


def test_models_and_numbers_stand_for_names() -> None:
    Path("t.csv").write_text("arrival_ms,job,steps\n0,lstm-512,1\n1,m #2,2\n2,m #1,3\n")
    m = {**MODEL, "name": "m"}
    jobs = [{"model": "lstm-512"}, {"model": m}, {"model": m, "priority": 1}]
    chip = "column-npu-16k"
    assert rows({"chip": chip, "arrivals": {"path": "t.csv"}, "jobs": jobs}) == [
        ("lstm-512", 0, 1, "lstm-512"),
        ("m-a", 520_000, 3, "m #1"),
        ("m-b", 260_000, 2, "m #2"),
    ]


def test_a_file_without_jobs_is_for_the_only_entry() -> None:
    Path("t.csv").write_text("arrival_cycles\n4\n9\n")
    only = entry("a", steps=2)
    assert rows(scenario(only)) == [("a #1", 4, 2, "a"), ("a #2", 9, 2, "a")]
    assert len(rows(scenario(only, entry("b", steps=1, arrival=0)))) == 3
    with pytest.raises(InputError, match=r"^t\.csv:1: has no column 'job' that says to which of 2 jobs a row belongs$"):
        load_scenario(scenario(only, entry("b", steps=1)))


def test_language_model_traces_are_read_as_they_are() -> None:
    steps = {"kind": "column", "column": "GeneratedTokens"}
    llm = {"kind": "file", "path": "llm.csv"}
    jobs = [
        entry("a", arrival=llm, steps=steps),
        entry("b", arrival=llm, steps={**steps, "column": ["ContextTokens", "GeneratedTokens"], "per_step": 100}),
        entry("c", arrival={**llm, "speedup": 1000}, steps={**steps, "per_step": 0.5}, count=2),
    ]
    assert [each[1:3] for each in rows({"chip": CHIP, "jobs": jobs})] == [
        *((0, 44), (0, 1), (100_000_300, 55)),
        *((0, 5), (0, 1), (100_000_300, 10)),
        *((0, 88), (0, 1)),
    ]
    # a week of 2024 has offsets from UTC, and times without decimals
    Path("llm.csv").write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,5,6\n2024-05-10 02:00:01+02:00,1,2\n"
    )
    assert list(read_arrivals("llm.csv", 1).cycles) == [0, 990_070]


@pytest.mark.parametrize(
    ("moment", "seconds"),
    [
        # the same moment, told in four zones, and moments beside it
        ("2024-05-09 18:30:00-05:30", 0),
        ("2024-05-10 05:45:00+05:45", 0),
        ("2024-05-09 20:00:00-04:00", 0),
        ("2024-05-10 00:00:01Z", 1),
        ("2024-05-10 23:59:60", 86_400),
        ("2024-03-01 00:00:00", -70 * 86_400),
        ("2024-02-28 23:59:59", -71 * 86_400 - 1),
    ],
)
def test_a_moment_of_a_zone_is_one_of_utc(moment: str, seconds: int) -> None:
    # the first of all: a clock of 1 MHz counts microseconds from it
    Path("llm.csv").write_text(f"TIMESTAMP\n2024-01-01 00:00:00\n2024-05-10 00:00:00\n{moment}\n")
    first, *others = read_arrivals("llm.csv", 1).cycles
    midnight = 130 * 86_400_000_000
    assert (first, sorted(others)) == (0, sorted([midnight, midnight + seconds * 1_000_000]))


def test_traces_of_functions_come_when_they_began() -> None:
    trace = {"path": "functions.txt", "job_column": "func", "tenant_column": "app"}
    steps = {"kind": "column", "column": "duration", "per_step": 0.01}
    jobs = [entry("f1", steps=steps), entry("f2", steps=7)]
    # began at 5160.008570018768, 5159.3 and 5161.267997037888 s
    assert rows({"chip": CHIP, "arrivals": trace, "jobs": jobs}) == [
        ("f1 #1", 70_857_001, 14, "f1/a1"),
        ("f1 #2", 196_799_703, 2, "f1/a2"),
        ("f2", 0, 7, "f2/a1"),
    ]
    file = read_arrivals("functions.txt", 100, wanted=Wanted(words=("app",)))
    assert ([file.line(number) for number in range(3)], file.labels) == ([3, 2, 4], {"app": ("a1", "a1", "a2")})


def test_lines_are_counted_with_blank_ones() -> None:
    file = read_arrivals("t.csv", 100)
    assert [file.line(number) for number in range(4)] == [2, 3, 5, 6]
    assert list(file.lengths[OWN_STEPS]) == [10, 20, 5, 7]
    assert list(read_lengths("t.csv", Measure(("steps", "arrival_cycles"), 5))) == [2, 5, 3, 3]


ROUTES: list[tuple[str, dict[str, Any], str]] = [
    ("0,asr\n1,ttz\n", {}, r"^t\.csv:3: job: no job is called 'ttz'; did you mean 'tts'\?$"),
    ("0,asr\n1,unlike\n", {}, r"^t\.csv:3: job: no job is called 'unlike'; there is 'asr', 'tts'$"),
    ("0,asr\n1,own\n", {}, r"^t\.csv:3: job: job 'own' has an `arrival` of its own$"),
    ("0,asr\n1,asr\n", {}, r"^jobs\.1: no row of t\.csv has its name, 'tts', in column 'job'$"),
    ("0,asr\n" + "1,x\n" * 30, {}, r"and 10 more like these$"),
    ("0,asr\n1,tts\n", {"arrivals.job_column": "jobs"}, r"^t\.csv:1: has no column 'jobs'; did you mean 'job'\?$"),
    ("0,asr\n1,tts\n", {"arrivals.speedup": 0}, r"^overrides arrivals\.speedup=0: must be greater than 0, got 0$"),
    ("0,asr\n1,tts\n", {"arrivals.sped": 1}, r"^overrides arrivals\.sped=1: unknown key; did you mean 'speedup'\?$"),
    ("0,asr\n1,tts\n", {"arrivals": {}}, r"^overrides arrivals=\{\}: path: required key is missing"),
    (
        "0,asr\n1,tts\n",
        {"arrivals.path": "no.csv"},
        r"^overrides arrivals\.path=no\.csv: no\.csv: no such file or folder$",
    ),
    ("0,asr\n1,tts\n", {"jobs.0.count": 2}, r"^arrivals\.path: the file has 1 arrivals, there are 2 jobs \(count\)$"),
    ("0,asr\nsoon,tts\n", {}, r"^t\.csv:3: arrival_ms: must be a number of milliseconds"),
]


@pytest.mark.parametrize(("content", "changes", "sentence"), ROUTES)
def test_rows_that_find_no_job_are_mistakes(content: str, changes: dict[str, Any], sentence: str) -> None:
    Path("t.csv").write_text("arrival_ms,job\n" + content)
    data = scenario(entry("asr", steps=1), entry("tts", steps=1), entry("own", steps=1, arrival=0))
    with pytest.raises(InputError, match=sentence):
        load_scenario(data, [f"{path}={value}" for path, value in changes.items()])


def test_other_mistakes_between_entries_and_files() -> None:
    with pytest.raises(InputError, match=r"^arrivals: has no effect: each job has an `arrival` of its own$"):
        load_scenario(scenario(entry("a", steps=1, arrival=0)))
    with pytest.raises(InputError, match=r"^t\.csv:2: job: 2 jobs are called 'asr': .* expected one of asr #1, asr #2"):
        load_scenario(scenario(entry("asr"), entry("asr")))
    with pytest.raises(InputError, match=r"^t\.csv:1: has no column 'tokens'"):
        load_scenario(scenario(entry("tts"), entry("asr", steps={"kind": "column", "column": "tokens"})))
    file = {"kind": "file", "path": "t.csv", "job": "ast"}
    with pytest.raises(
        InputError, match=r"^jobs\.0\.arrival\.job: no row of t\.csv has 'ast' .*; did you mean 'asr'\?$"
    ):
        load_scenario({"chip": CHIP, "jobs": [entry("a", arrival=file)]})
    Path("t.csv").write_text("arrival_ms,job\n0,asr\n0,tts\n")
    with pytest.raises(InputError, match=r"^jobs\.1\.steps: required key is missing \(the model states no steps"):
        load_scenario(scenario(entry("tts", steps=1), entry("asr")))


HOSTILE: list[tuple[str, str]] = [
    ("arrival_ms,steps\n1,0\n", r"a\.csv:2: steps: must be a whole number of steps, at least 1, got 0"),
    ("arrival_ms,steps\n1,2.5\n", r"a\.csv:2: steps: must be a whole number of steps, at least 1, got 2\.5"),
    ("arrival_ms,steps\n1,-3\n", r"a\.csv:2: steps: must be at least 0, got -3"),
    ("arrival_ms,steps\n1,\n", r"a\.csv:2: steps: must not be empty, got ''"),
    ("arrival_ms,steps\n1,9999999999\n", r"a\.csv:2: steps: must make at most 1,000,000,000 steps, got 9999999999"),
    ("arrival_ms,stepz\n1,1\n", r"a\.csv:1: unknown column 'stepz'; did you mean 'steps'\?"),
    ("TIMESTAMP\n2023-11-16\n", r"a\.csv:2: TIMESTAMP: must be a time such as 2023-11-16 18:15:46\.6805900, got '2023"),
    ("TIMESTAMP\n2023-13-16 00:00:00\n", r"a\.csv:2: TIMESTAMP: must be a time such as"),
    ("TIMESTAMP\n2023-11-16 24:00:00\n", r"a\.csv:2: TIMESTAMP: must be a time such as"),
    ("TIMESTAMP\n0000-11-16 20:00:00\n", r"a\.csv:2: TIMESTAMP: must be a time such as"),
    ("TIMESTAMP\n12.5\n", r"a\.csv:2: TIMESTAMP: must be a time such as .* got 12\.5"),
    ("TIMESTAMP,arrival_ms\n12.5,3\n", r"a\.csv:1: must name one kind of times only, got arrival_ms and TIMESTAMP"),
    ("TIMESTAMP,TIMESTAMP\n", r"a\.csv:1: column 'TIMESTAMP' comes 2 times"),
    ("TIMESTAMP\n", r"a\.csv: has a header only, expected arrivals below it"),
    ("end_timestamp\n5\n", r"a\.csv:1: has end_timestamp, and duration is missing"),
    ("end_timestamp,duration\n5,-1\n", r"a\.csv:2: duration: must be at least 0, got -1"),
    ("end_timestamp,duration\nx,y\n", r"a\.csv:2: duration: must be a number of seconds, such as 0\.134, got 'y'"),
    ("end_timestamp,duration\n1e30,1\n2,1\n", r"a\.csv: lasts \d+ cycles on this chip, expected at most 2\^62"),
]


@pytest.mark.parametrize(("content", "sentence"), HOSTILE)
def test_what_is_wrong_with_a_file_is_said(content: str, sentence: str) -> None:
    Path("a.csv").write_text(content)
    with pytest.raises(InputError, match=sentence):
        read_arrivals("a.csv", 250)


def test_broken_files_are_refused_with_a_sentence_or_read() -> None:
    """Traces with a few characters changed: nothing but `InputError` comes out."""
    chance = random.Random(0)
    said: list[InputError] = []
    for _ in range(examples(100)):
        name, text = chance.choice((("t.csv", TRACE), ("llm.csv", LLM), ("functions.txt", FUNCTIONS)))
        for _ in range(chance.randint(1, 3)):
            place = chance.randrange(len(text))
            text = (
                text[:place]
                + chance.choice(("", ",", "\n", '"', "9", "-", "e9", "\0", "é", " ", "x"))
                + text[place + 1 :]
            )
        Path(name).write_text(text)
        wide = {"kind": "file", "path": name}
        picks = {"job": "asr"} if name == "t.csv" else {"job_column": "func"} if name == "functions.txt" else {}
        column = {"t.csv": "steps", "llm.csv": "ContextTokens", "functions.txt": "duration"}[name]
        steps = {"kind": "column", "column": column}
        try:
            jobs = load_scenario({"chip": CHIP, "jobs": [entry("a", arrival={**wide, **picks}, steps=steps)]}).jobs
        except InputError as error:
            said.append(error)
        else:
            assert all(job.steps >= 1 for job in jobs)
        Path(name).write_text({"t.csv": TRACE, "llm.csv": LLM, "functions.txt": FUNCTIONS}[name])
    assert 20 < len(said) < 180
    assert all(str(each).isprintable() and each.sentence for error in said for each in error.mistakes)
