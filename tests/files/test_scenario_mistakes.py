"""What users are told about a broken file: every mistake at once, each with its place."""

from pathlib import Path

import pytest

from lstmsim.base.errors import MAX_MISTAKES, InputError
from lstmsim.files.scenario.scenario_file import load_chip, load_model, load_scenario

CHIP = {"kind": "column-npu", "frequency_mhz": 260, "cores": [{"npe": 64, "ep": 4, "vp": 16}]}


def layer(cell="lstm", hidden=8, input=8, **more):
    return {"cell": cell, "hidden": hidden, "input": input, **more}


def data(job=None, core=None, **more):
    chip = {**CHIP, "cores": [{**CHIP["cores"][0], **(core or {})}]}
    return {"chip": chip, "jobs": [{"model": {"layers": [layer()]}, "steps": 2, **(job or {})}], **more}


def mistakes(source, overrides=()):
    with pytest.raises(InputError) as caught:
        load_scenario(source, overrides)
    return str(caught.value).splitlines()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def reported(folder, content, name="s.yaml"):
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return mistakes(name)


BROKEN = """\
name: broken
chip:
  kind: column-npu
  frequency_mhz: 0
  cores:
    - {npe: 64, ep: 4, vp: 0, threads: true}
    - {npe: 64, ep: 16, vp: 8, tail_widht: 3}
    - {npe: "12", ep: 1e1, vp: .nan, latency: {read: -1, reed: 3}}
jobs:
  - {model: lstm-511, stepz: 3}
  - {model: gru-512, steps: 3, arrival: [1, 2], batch: 65}
  - model:
      layers:
        - {cell: lstmm, hidden: 8, input: 8}
        - {cell: lstm, hidden: 8, input: 9}
      layer_order: steps
    steps: 1.0
    steps: 2
  - {model: nope/x.yaml, steps: 10000000000}
  - 5
extra: 1
"""

GOLDEN = """\
s.yaml:4:18: chip.frequency_mhz: must be greater than 0, got 0
s.yaml:6:28: chip.cores.0.vp: must be at least 1, got 0
s.yaml:6:40: chip.cores.0.threads: must be a whole number, got true
s.yaml:7:29: chip.cores.1.vp: ep * vp must not exceed npe: 16 * 8 = 128 > 64
s.yaml:7:32: chip.cores.1.tail_widht: unknown key; did you mean 'tail_width'?
s.yaml:8:13: chip.cores.2.npe: must be a whole number, got '12'; leave the quotes out
s.yaml:8:23: chip.cores.2.ep: must be a whole number, got 1e1; write 10
s.yaml:8:32: chip.cores.2.vp: must be a whole number, got .nan
s.yaml:8:54: chip.cores.2.latency.read: must be at least 0, got -1
s.yaml:8:58: chip.cores.2.latency.reed: unknown key; did you mean 'read'?
s.yaml:10:13: jobs.0.model: no model called 'lstm-511'; did you mean 'lstm-512'?
s.yaml:10:23: jobs.0.stepz: unknown key; did you mean 'steps'?
s.yaml:11:41: jobs.1.arrival: must hold as many arrivals as there are jobs (count 1), got 2
s.yaml:11:56: jobs.1.batch: must be at most 64 on a column-wise NPU, got 65
s.yaml:14:18: jobs.2.model.layers.0.cell: no cell called 'lstmm'; did you mean 'lstm'?
s.yaml:15:42: jobs.2.model.layers.1.input: must be 8, the output of layer 0 (8 units), got 9
s.yaml:16:20: jobs.2.model.layer_order: must be 'layer' or 'step', got 'steps'; did you mean 'step'?
s.yaml:17:12: jobs.2.steps: must be a whole number, got 1.0; write 1
s.yaml:18:5: jobs.2.steps: duplicate key, first given on line 17
s.yaml:19:13: jobs.3.model: no file called 'nope/x.yaml'
s.yaml:19:33: jobs.3.steps: must be at most 1000000000, got 10000000000
s.yaml:20:5: jobs.4: must be a mapping of keys to values, got 5
s.yaml:21:1: extra: unknown key; known keys: name, chip, dispatch, preemption, placement, arrivals, jobs, precision \
and cells
"""


def test_all_mistakes_of_a_file_come_at_once_with_their_places(folder):
    assert reported(folder, BROKEN) == GOLDEN.splitlines()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "s.yaml: is empty, expected a mapping of keys to values"),
        ("# only a comment\n", "s.yaml: is empty, expected a mapping of keys to values"),
        ("- 1\n", "s.yaml:1:1: must be a mapping of keys to values, got a list"),
        ("chip: a\n---\nchip: b\n", "s.yaml:2:1: a second document starts here, expected only one"),
        (b"chip: \xff\n", "s.yaml:1:7: byte 0xff is not UTF-8, expected YAML or JSON text in UTF-8"),
        ("chip: a".encode("utf-16-le"), "s.yaml: is a binary file (or UTF-16), expected YAML or JSON text in UTF-8"),
        (b"\x89PNG\0\0", "s.yaml: is a binary file (or UTF-16), expected YAML or JSON text in UTF-8"),
        ("[" * 700, "s.yaml: is nested too deeply"),
        ("a: &x [*x]\n", "s.yaml:1:4: a.0: an alias that holds itself has no end"),
        ("a: !!python/object:os.system {}\n", "s.yaml:1:4: a: tag '!!python/object:os.system' is not allowed"),
        ("a: !mine 3\n", "s.yaml:1:4: a: tag '!mine' is not allowed"),
        ("? [1, 2]\n: 3\n", "s.yaml:1:3: a key must be one word of text"),
        ("1: 3\n", "s.yaml:1:1: a key must be text, got 1"),
        ("a: &b {c: 1}\nd: {<<: *b}\n", "s.yaml:2:5: d: YAML 1.2 has no merge key '<<'"),
        ("%YAML 1.1\n---\na: 010\n", "s.yaml:1:1: must be YAML 1.2, got '1.1'"),
        ("a: [1, 2\nb: 3\n", "s.yaml:2:2: not valid YAML"),
        ('a: "\\U00110000"\n', "s.yaml: not valid YAML"),
        ("a: \x01\n", "s.yaml: not valid YAML"),
        ("a: 1" + "0" * 5000 + "\n", "s.yaml:1:4: a: cannot be read as a value"),
    ],
)
def test_what_is_no_scenario_at_all_is_refused(folder, content, sentence):
    assert reported(folder, content)[0].startswith(sentence)


def test_a_broken_json_file_is_not_called_yaml(folder):
    (first,) = reported(folder, '{"chip": "column-npu-64k"\n "jobs": []}', "s.json")
    assert first.startswith("s.json:2:2: not valid JSON: ")
    (other,) = reported(folder, '{"chip": "\\U00110000"}', "s.json")
    assert other.startswith("s.json:1:11: not valid JSON: ")
    # JSON is YAML, and YAML is read from such a file too
    assert "not valid" not in reported(folder, "a: {b: 1}", "s.json")[0]


def test_an_alias_bomb_is_refused(folder):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert "aliases expand to more than 10000 values" in reported(folder, "\n".join(lines))[0]


def test_a_modest_alias_is_welcome(folder):
    text = "chip: column-npu-64k\njobs:\n  - &job {model: lstm-512, steps: 3}\n  - *job\n"
    (folder / "s.yaml").write_text(text)
    assert [job.name for job in load_scenario("s.yaml").jobs] == ["lstm-512-a", "lstm-512-b"]


def test_files_that_cannot_be_read(folder, monkeypatch):
    (folder / "demo.yaml").write_text("a: 1")
    assert mistakes("dem.yaml") == ["no file called 'dem.yaml'; did you mean 'demo.yaml'?"]
    assert mistakes("dem.yml") == ["no file called 'dem.yml'; did you mean 'demo.yaml'?"]
    # an ending in common makes no names alike
    assert mistakes("nope.yaml") == ["no file called 'nope.yaml'"]
    assert mistakes(".") == [".: is a folder, expected a file"]
    assert mistakes("a\0b.yaml") == ["cannot read 'a\\x00b.yaml': embedded null byte"]
    assert mistakes("x" * 5000)[0].startswith("cannot read 'xxx")
    monkeypatch.setattr("lstmsim.files.yaml.source.MAX_BYTES", 3)
    assert mistakes("demo.yaml") == ["demo.yaml: is larger than 0 MB"]


def test_mistakes_in_other_files_are_told_with_their_places(folder):
    (folder / "sub").mkdir()
    (folder / "sub/chip.yaml").write_text("kind: column-npu\nfrequency_mhz: fast\ncores:\n  - {npe: 4, ep: 8}\n")
    (folder / "sub/model.yaml").write_text("layers:\n  - {cell: lstm, hidden: 0, input: 4}\n")
    (folder / "sub/s.yaml").write_text("chip: chip.yaml\njobs:\n  - {model: ./model.yaml, steps: 1, count: 0}\n")
    assert mistakes("sub/s.yaml") == [
        "sub/chip.yaml:2:16: frequency_mhz: must be a number, got 'fast'",
        "sub/chip.yaml:4:18: cores.0.ep: must not exceed npe: 8 > 4",
        "sub/model.yaml:2:26: layers.0.hidden: must be at least 1, got 0",
        "sub/s.yaml:3:44: jobs.0.count: must be at least 1, got 0",
    ]
    for load, path in ((load_chip, "sub/chip.yaml"), (load_model, "sub/model.yaml"), (load_model, "sub/model.yaml")):
        with pytest.raises(InputError, match=path):
            load(path)


def test_missing_keys_say_what_they_are_for(folder):
    assert reported(folder, "chip:\n  kind: column-npu\n  cores: [{ep: 4}]\njobs:\n  - {model: g2p-en-encoder}\n") == [
        "s.yaml:2:3: chip.frequency_mhz: required key is missing (the clock in MHz)",
        "s.yaml:3:11: chip.cores.0.npe: required key is missing (multipliers of the core)",
        "s.yaml:5:5: jobs.0.steps: required key is missing (the model states no steps of its own)",
    ]
    assert mistakes({}) == [
        "chip: required key is missing (a preset's name, a path, or the chip itself)",
        "jobs: required key is missing (a list of jobs)",
    ]


@pytest.mark.parametrize(
    ("source", "place", "words"),
    [
        (data(core={"cat": 3}), "chip.cores.0.cat", "must be a power of two"),
        (data(core={"cat": 4}), "chip.cores.0.cat", "needs tree_inputs"),
        (data(core={"tree_inputs": 64, "cat": 2}), "chip.cores.0.ep", "gives ep 64, 32; got 4"),
        (data(core={"thread_policy": "coarce"}), "chip.cores.0.thread_policy", "did you mean 'coarse'?"),
        (data(core={"vp": -1}), "chip.cores.0.vp", "must be at least 1, got -1"),
        (data(core={"latency": None}), "chip.cores.0.latency", "must be a mapping of keys to values, got nothing"),
        (data(core={"count": 5000}), "chip.cores.0.count", "must be at most 4096, got 5000"),
        (data(core={"count": 4096, "threads": 1000}), "chip.cores", "at most 65536 threads in all, got 4096000"),
        (data(core={"ep": 128, "vp": None}), "chip.cores.0.ep", "must not exceed npe: 128 > 64"),
        (data({"core": 1}), "jobs.0.core", "must be 0, the chip's only core, got 1"),
        (data({"core": 2}, {"count": 2}), "jobs.0.core", "must be one of the chip's cores 0 to 1, got 2"),
        (data({"steps": float("nan")}), "jobs.0.steps", "must be a whole number, got nan"),
        (data({"steps": True}), "jobs.0.steps", "must be a whole number, got true"),
        (data({"steps": 2**9000}), "jobs.0.steps", "must be at most 1000000000, got a number of 9001 bits"),
        (data({"steps": 1_000_000_000}), "jobs.0.steps", "takes up to 14,000,000,000 operations"),
        (data({"count": 1_000_001}), "jobs.0.count", "must be at most 1000000"),
        (data({"arrival": {"kind": "stream", "frame_ms": 1, "seed": 1}}), "jobs.0.arrival.seed", "is no key of stream"),
        (data({"arrival": "now"}), "jobs.0.arrival", "must be a whole number, got 'now'"),
        (data({"arrival": [0, -1], "count": 2}), "jobs.0.arrival.1", "must be at least 0, got -1"),
        (data({"name": "a\nb"}), "jobs.0.name", "must be printable text"),
        (data({"name": "\ud800"}), "jobs.0.name", "must be valid Unicode text, got '\\ud800'"),
        (data({"model": {"layers": []}}), "jobs.0.model.layers", "must be a list of at least 1 entry, got 0"),
        (data({"model": {"layers": [layer(bidirectional=1)]}}), "jobs.0.model.layers.0.bidirectional", "true or false"),
        (
            data({"model": {"layers": [layer(bidirectional=True)], "layer_order": "step"}}),
            "jobs.0.model.layers.0.bidirectional",
            "needs layer_order 'layer'",
        ),
        (data({"model": {"layers": [layer(hidden=10**6, input=10**6)]}}), "jobs.0", "takes up to "),
        (
            data({"model": {"layers": [layer("gru")]}}, {"vp": 2}),
            "jobs.0",
            "'gru' has 3 gates and needs vp >= 3, got vp 2",
        ),
        (
            data({"model": {"layers": [layer("gru")]}, "core": 0, "name": "g"}, {"vp": 2}),
            "jobs.0.core",
            "job 'g' cannot run on core 0: cell 'gru' has 3 gates",
        ),
        (data(core={"block_order": "column", "vp": 8}), "jobs.0", "needs accumulator_banks >= 4"),
        (data(colour=object()), "colour", "got a value of type object"),
        (data(chip={**CHIP, "kind": "column_npu"}), "chip.kind", "did you mean 'column-npu'?"),
        (data(chip={**CHIP, "frequency_mhz": float("inf")}), "chip.frequency_mhz", "finite number, got infinity"),
        (data(chip={**CHIP, "frequency_mhz": 1e-9}), "chip.frequency_mhz", "must be at least 1e-06, got 1e-09"),
        (data(chip="column-npu-64kk"), "chip", "did you mean 'column-npu-64k'?"),
    ],
)
def test_single_mistakes(source, place, words):
    sentences = mistakes(source)
    assert sentences[0].startswith(f"{place}: ")
    assert words in sentences[0]


def test_a_job_is_refused_only_if_no_core_can_run_it():
    wide, narrow = {"npe": 64, "ep": 4, "vp": 16}, {"npe": 64, "ep": 4, "vp": 2}
    source = data({"model": {"layers": [layer("gru")]}})
    assert load_scenario({**source, "chip": {**CHIP, "cores": [narrow, wide]}}).jobs[0].cores is None
    short = {**wide, "block_order": "column", "accumulator_banks": 1}
    (told_once,) = mistakes({**source, "chip": {**CHIP, "cores": [{**narrow, "count": 2}, short]}})
    assert "any core: core 0: cell 'gru' has 3 gates" in told_once
    assert "; core 2: block_order 'column' needs accumulator_banks >= 2" in told_once
    assert "core 1" not in told_once


def test_data_that_holds_itself_is_refused():
    loop = data()
    loop["jobs"][0]["model"] = loop
    assert mistakes(loop) == ["is nested too deeply, or holds itself"]


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("chip.cores.0.ep=40", "an adder tree of 64 inputs with CAT-4 gives ep 64, 32, 16; got 40"),
        ("chip.cores.0.epp=4", "unknown key; did you mean 'ep'?"),
        ("chip.cors.0.ep=4", "'chip' has no key 'cors'; did you mean 'cores'?"),
        ("chp.cores.0.ep=4", "the top has no key 'chp'; did you mean 'chip'?"),
        ("chip.cores.1.ep=4", "'chip.cores' has 1 entry, counted from 0: there is no 1"),
        ("chip.cores.-1.ep=4", "'chip.cores' is a list of 1 entry: expected an index, got '-1'"),
        ("chip.cores.0.latency.red=4", "unknown key; did you mean 'read'?"),
        ("jobs.0.steps.x=4", "'jobs.0.steps' is 3: there is nothing below it"),
        ("jobs.0={model: g2p-en-encoder}", "required key"),
        ("jobs.0.steps=1e3", "must be a whole number, got 1e3; write 1000"),
        ("jobs.0.steps=[1", "not valid YAML"),
        ("jobs.0.model=lstm-51", "no model called 'lstm-51'; did you mean 'lstm-512'?"),
        ("jobs.0={model: lstm-512, steps: 0}", "must be at least 1, got 0"),
        ("jobs.0.steps", "must look like PATH=VALUE"),
        ("=4", "must look like PATH=VALUE"),
        ("jobs..steps=4", "must look like PATH=VALUE"),
    ],
)
def test_mistakes_in_overrides_point_to_the_override(override, words):
    source = {"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 3}]}
    (told_once,) = mistakes(source, [override])
    assert told_once.startswith(f"overrides {override}: ")
    assert words in told_once


def test_an_override_below_an_unknown_chip_adds_no_noise(folder):
    (folder / "s.yaml").write_text("chip: none\njobs: [{model: lstm-512, steps: 1}]\n")
    (told_once,) = mistakes("s.yaml", ["chip.cores.0.ep=4"])
    assert told_once.startswith("s.yaml:1:7: chip: no chip called 'none'")


def test_an_override_that_makes_an_old_number_wrong_is_blamed():
    assert mistakes(data(), ["chip.cores.0.npe=32"]) == [
        "overrides chip.cores.0.npe=32: ep * vp must not exceed npe: 4 * 16 = 64 > 32"
    ]


def test_paths_may_be_path_objects(folder):
    assert str(Path("x.yaml")) in mistakes(Path("x.yaml"))[0]


@pytest.mark.parametrize(
    "text",
    [
        "chip: column-npu-64k\njobs:\n" + "".join(f"  - {{model: nosuch{n}}}\n" for n in range(150)),
        "chip: column-npu-64k\njobs: [" + "1, " * 150 + "]\n",
    ],
)
def test_a_file_is_read_up_to_its_hundredth_mistake(folder, text):
    assert len(reported(folder, text)) == MAX_MISTAKES


@pytest.mark.parametrize(
    ("override", "alone"),
    [
        ("chip.cores.0.ep=0", True),
        ("chip.cores.0.ep=x", True),
        ("chip.cores.0.cat=3", True),
        ("chip.cores.0.thread_policy=fien", True),
        ("chip=column-npu-6k", True),
        ("chip.cores.0.epp=1", False),
        # wrong beside the others, right with a larger npe or a smaller ep
        ("chip.cores.0.vp=32", False),
        ("chip.cores.0.ep=128", False),
        ("chip.cores.0.cat=2", False),
    ],
)
def test_a_mistake_says_whether_the_value_is_wrong_alone(override: str, alone: bool) -> None:
    with pytest.raises(InputError) as caught:
        load_scenario(data(), [override])
    assert [each.alone for each in caught.value.mistakes] == [alone]
