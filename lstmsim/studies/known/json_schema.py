"""JSON schema of requests and of the keys of files, read off the same keys as checks, help and documents."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from lstmsim.files.scenario.schema import chip_of_kind
from lstmsim.machines.registry import KINDS
from lstmsim.studies.known.file_schema import FILES
from lstmsim.studies.known.keys import ENTRIES
from lstmsim.studies.known.shapes import Shapes
from lstmsim.studies.shared.request import sentence_of

#: The requests by the names of their commands.
REQUESTS: Mapping[str, str] = {
    "simulate": "simulate.request.SimulateRequest",
    "compare": "compare.request.CompareRequest",
    "diff": "diff.request.DiffRequest",
    "validate": "validate.request.ValidateRequest",
    "accuracy": "accuracy.request.AccuracyRequest",
    "serve": "serve.request.ServeRequest",
    "saturate": "serve.request.SaturateRequest",
    "load-latency": "serve.request.LoadLatencyRequest",
    "fit": "fit.request.FitRequest",
    "sparse": "sparse.request.SparseRequest",
    "gemm": "gemm.request.GemmRequest",
    "fuse": "fuse.request.FusionRequest",
    "rtl": "rtl.request.RtlRequest",
    "board": "board.request.BoardRequest",
    "search": "search.request.SearchRequest",
    "design": "design.request.DesignRequest",
    "sweep": "sweep.request.SweepRequest",
    "merge": "sweep.request.MergeRequest",
    "timeline": "simulate.request.TimelineRequest",
    "program": "simulate.request.ProgramRequest",
    "import": "importing.ImportRequest",
}


def json_schema() -> dict[str, Any]:
    """Give a JSON schema whose definitions are the requests of studies and the mappings of files.

    >>> schema = json_schema()
    >>> schema["$defs"]["request gemm"]["properties"]["batch"]["minimum"]
    1
    >>> schema["$defs"]["chip column-npu"]["properties"]["frequency_mhz"]["type"]
    'number'
    """
    requests = Shapes(sentence_of)
    defs = {f"request {name}": requests.mapping(_class(home)) for name, home in REQUESTS.items()}
    defs |= {place: FILES.mapping(entry) for place, entry, _ in ENTRIES}
    defs |= {f"chip {kind}": FILES.mapping(chip_of_kind(kind)) for kind in KINDS}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "lstmsim", "$defs": defs}


def _class(home: str) -> type:
    module, _, name = home.rpartition(".")
    found: type = getattr(import_module(f"lstmsim.studies.{module}"), name)
    return found
