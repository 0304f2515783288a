"""Options are declared once, in the requests of studies: commands, their help and their checks follow from these."""

from __future__ import annotations

from collections.abc import Iterable

import click
import pytest

from lstmsim import engines
from lstmsim.base.keys import keys_of
from lstmsim.cli.group import COMMANDS, command_of
from lstmsim.engines.feeds import WINDOW
from lstmsim.machines import gemm
from lstmsim.model.fusion.plan import MODES
from lstmsim.model.sparse.made import PRUNINGS
from lstmsim.studies.fuse.request import FusionRequest
from lstmsim.studies.gemm.request import GemmRequest
from lstmsim.studies.rtl.request import RtlRequest
from lstmsim.studies.rtl.simulators import SIMULATORS
from lstmsim.studies.rtl.synthesis import FAMILIES
from lstmsim.studies.serve.request import ServeRequest
from lstmsim.studies.simulate.request import SimulateRequest
from lstmsim.traffic.latencies import PERCENTILES
from tests.cli.runner import call


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_in_a_sentence_what_it_is(name: str) -> None:
    options = [each for each in command_of(name).params if isinstance(each, click.Option)]
    for each in options:
        assert each.help, each.name
        assert each.help[0].isupper() or each.name == "caches", each.help
        assert each.help.endswith("."), each.help
        assert len(each.help.split()) > 2, each.help
    names = [word for each in options for word in (*each.opts, *each.secondary_opts)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("request_of", "field", "known"),
    [
        (SimulateRequest, "engine", engines.ENGINES),
        (GemmRequest, "caches", gemm.CACHES),
        (GemmRequest, "packed", gemm.PACKED),
        (GemmRequest, "relief", gemm.RELIEFS),
        (RtlRequest, "simulator", SIMULATORS),
        (RtlRequest, "synth", FAMILIES),
    ],
)
def test_words_of_requests_are_those_that_studies_know(request_of: type, field: str, known: Iterable[str]) -> None:
    # a request imports nothing heavy, so it has the words a second time
    assert keys_of(request_of)[field].key.choices == tuple(known)


def test_defaults_of_requests_are_those_of_studies() -> None:
    keys = keys_of(ServeRequest)
    assert (keys["window"].default, keys["percentiles"].default) == (WINDOW, PERCENTILES)
    assert keys_of(FusionRequest)["modes"].default == tuple(MODES)
    (pruned,) = (each for each in command_of("sparse").params if each.name == "prune_by")
    assert isinstance(pruned, click.Option)
    assert all(word in str(pruned.help) for word in PRUNINGS)


@pytest.mark.parametrize(("name", "chip"), [("fuse", "v100"), ("gemm", "epyc-7742"), ("sparse", "v100")])
def test_commands_keep_their_own_chip(name: str, chip: str) -> None:
    (own,) = (each for each in command_of(name).params if each.name == "chip")
    assert own.default == chip


def test_commands_whose_results_have_stamps_show_them_when_asked() -> None:
    options = {name: {word for each in command_of(name).params for word in each.opts} for name in COMMANDS}
    stamped = "simulate serve saturate load-latency compare search sweep design diff gemm sparse fuse"
    assert {name for name, words in options.items() if "--stamp" in words} == set(stamped.split())


@pytest.mark.slow
def test_a_stamp_that_is_asked_for_has_every_key() -> None:
    shown = call("gemm", "4", "16", "16", "--threads", "1", "--no-baselines", "--stamp").stdout
    line, stamp = shown.rstrip().split("\n\n")[-2:]
    assert line.endswith("not compared with silicon. More: --stamp.")
    assert stamp.startswith("STAMP of epyc-7742: the timing contract only, no hardware (")
    for key in ("page", "cores.pack_per_cycle", "cores.elementwise_cycles"):
        assert key in " ".join(stamp.split()), key
