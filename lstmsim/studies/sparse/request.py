"""Options of a sparse product."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.studies.shared.request import ChipOverrides, ChipSource, Engine, Path, Progress, Seed, Size

if TYPE_CHECKING:
    from lstmsim.model.sparse.csr import Csr
else:
    Csr = Any

#: The products, with what each one is.
KERNELS = {"spmv": "y = A x, A sparse", "spmm": "C = A B, A sparse", "sddmm": "D = (A B) o C, C sparse"}
_SIDE = (
    "Side on which the sparse matrix W is. left: W B (forward). transposed: W^T B (backward, by the CSC of W; also of "
    "spmv). right: A W (sparse inputs; spmm only). The gradient of the weights, [dY X^T] o I(W), is --kernel sddmm "
    "--method gradient."
)
_BEST = (
    "Simulate some hundred settings of the method, take the fastest, and say how much slower the rule's choice is; "
    "parameters of --set stay fixed."
)


@record
class SparseRequest:
    """A sparse product, where it runs, and what is simulated with it."""

    matrix: Annotated[Path | Csr, Key("Sparse matrix: a file (.mtx, .smtx, each also .gz), or weights of a model.")]
    kernel: Annotated[str, Key("Kernel: spmv, spmm or sddmm.", choices=tuple(KERNELS), metavar="NAME")] = "spmm"
    method: Annotated[
        str | None,
        Key("Method of the kernel, like csr, dense or hbp.", follows="the first one that the chip has", metavar="NAME"),
    ] = None
    threshold: Annotated[
        float | None,
        Key(
            "In place of --method: take the sparse method if more than this fraction of MATRIX is zero, else the dense"
            " one.",
            metavar="FRACTION",
        ),
    ] = None
    side: Annotated[str, Key(_SIDE, metavar="SIDE")] = "left"
    columns: Annotated[
        Size,
        Key(
            "Columns of the dense operand (rows, for --side right); of sddmm the length of the inner products.",
            metavar="N",
        ),
    ] = 32
    chip: ChipSource = "v100"
    chip_overrides: ChipOverrides = ()
    options: Annotated[
        Sequence[str] | Mapping[str, Any],
        Key("Set a parameter of the kernel, like tile=64.", flag="--set", metavar="NAME=VALUE", repeatable=True),
    ] = ()
    prune: Annotated[float | None, Key("Set this fraction of a model's weights to zero.", metavar="FRACTION")] = None
    prune_by: Annotated[str, Key("Criterion of pruning: magnitude, row, bank or block.", metavar="WAY")] = "magnitude"
    banks: Annotated[Size, Key("Banks of a row.")] = 4
    block: Annotated[Size, Key("Rows and columns of a block.")] = 4
    seed: Annotated[Seed, Key("Seed of the numbers of dense operands.")] = 0
    values_seed: Annotated[
        Seed | None, Key("Seed of the values that are drawn for a file without values.", follows="1")
    ] = None
    baselines: Annotated[
        bool | None, Key("Simulate other ways to do the same.", follows="if the product is not too large")
    ] = None
    ablate: Annotated[bool, Key("Simulate the product with each mechanism off in turn.")] = False
    best: Annotated[bool, Key(_BEST)] = False
    engine: Engine = "fast"
    progress: Progress = None
