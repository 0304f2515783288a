"""`lstmsim gemm`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import click

from lstmsim.cli.options import chip_options, engine_option, seed_option, setting_option
from lstmsim.cli.outputs import progress, remark, write_json
from lstmsim.cli.product_outputs import OUTPUTS, check_product_outputs, product_options, write_product_outputs

__all__ = ["command"]

_NUMBER = re.compile(r"[+-]?\d{1,300}", re.ASCII)


class _Sizes(click.Command):
    """A command whose arguments may be negative numbers, which get a sentence of their own and are no options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # a space before it keeps the parser from reading `-5` as an option
        return super().parse_args(ctx, [f" {each}" if re.fullmatch(r"-[\d.]\S*", each) else each for each in args])


def _size(text: str) -> object:
    """A size as a number if it is one, else as it was written."""
    word = text.strip()
    return int(word) if _NUMBER.fullmatch(word) else word


@click.command(cls=_Sizes, name="gemm", short_help="Threads for a matrix product on a multi-core chip.")
@click.argument("sizes", nargs=-1, metavar="[M N K]")
@click.option("--model", metavar="MODEL", help="In place of M N K: a model's name or file, whose layer is computed.")
@click.option(
    "--product",
    default="step",
    show_default=True,
    metavar="NAME",
    help="Of the layer. step: one time step. projection: the inputs of all time steps. gradient: of the weights.",
)
@click.option("--layer", type=click.IntRange(min=0), default=0, show_default=True, help="Number of the layer.")
@click.option("--batch", type=click.IntRange(min=1), default=1, show_default=True, help="Inferences at once.")
@click.option("--steps", type=click.IntRange(min=1), help="Time steps of a projection or gradient.")
@click.option(
    "--part",
    type=click.IntRange(min=0),
    help="Which product, where gates read different vectors; default: the largest one.",
)
@click.option(
    "--threads",
    metavar="P[,P...]",
    help="On how many cores; default: all of the chip. Several numbers (1,2,4,8): a table of them.",
)
@chip_options("epyc-7742", "frequency_mhz=2000")
@click.option(
    "--caches",
    default="warm",
    show_default=True,
    metavar="STATE",
    help="cold: empty at the start. warm: as the same product left them. Both are simulated; this one is told in full.",
)
@click.option(
    "--packed",
    metavar="WHEN",
    help="When B is packed. once: before, as a job holds its weights. each: at every call. Default: once, but each "
    "for a gradient, whose B is new at every call.",
)
@click.option(
    "--cut",
    metavar="CUT",
    help="Run this cut, not the fastest: MK:4x1x16 (kind MN, MK, NK or MNK, then p_m x p_n x p_k), or with blocks "
    "MK:4x1x16:8x512x264.",
)
@click.option(
    "--relief",
    default="plan",
    show_default=True,
    metavar="NAME",
    help="How threads that add into the same block of C keep out of each other's way: plan, none, sub, buffer or both.",
)
@setting_option(
    "settings",
    "A parameter of the planner, like contention=4 or mn=all",
)
@click.option(
    "--baselines/--no-baselines",
    "baselines",
    default=None,
    help="Simulate all candidates and all M/N pairs, so that the fastest is known; default: if it takes no minutes.",
)
@click.option("--ablate", is_flag=True, help="Simulate the cut under each relief.")
@click.option(
    "--numbers/--no-numbers",
    "numbers",
    default=None,
    help="Compute C in the order of the steps and compare with numpy; default: if the product is not too large.",
)
@seed_option("Of the numbers of A and B.")
@engine_option
@product_options("what each thread does over time")
def command(sizes: tuple[str, ...], **arguments: Any) -> None:
    """Plan threads for the product C = A B with A of M x K and B of K x N, and simulate the plan and other ways.

    Threads share the rows and columns of C, or also the sums along K. The first sentence says what to cut: the
    fastest that was simulated, against the other kind of cut. Then stands what the planner's rule would have taken,
    beside M/N threads by BLIS's rule and the best M/N pair.

    \b
    lstmsim gemm 8 512 512 --threads 64
    lstmsim gemm 8 512 512 --threads 1,2,4,8,16,32,64
    lstmsim gemm 64 32 8192 --threads 16 --ablate --timeline threads.png
    lstmsim gemm 32 512 4096 --threads 64 --cut MK:4x1x16
    lstmsim gemm --model lstm-512 --product gradient --batch 4 --steps 100 --chip xeon-gold-5122
    """
    outputs = {name: arguments.pop(name) for name in OUTPUTS}
    given = arguments.pop("threads")
    threads = [] if given is None else [_size(each) for each in given.split(",")]
    several = len(threads) > 1
    if several:
        _check_several(outputs, arguments, len(threads))
    view = check_product_outputs(outputs, (arguments["chip"], arguments["model"] or ""))
    if len(sizes) not in (0, 3):
        raise click.UsageError(f"expected M, N and K, or --model; got {len(sizes)} sizes: {' '.join(sizes)}")
    from lstmsim.studies.gemm.run import plot_threads, run_gemm

    if several:
        _run_several(sizes, threads, arguments, outputs["json"])
        return
    if outputs["output"] is not None:
        arguments["numbers"] = True
    with progress("simulating") as show:
        report = run_gemm(*map(_size, sizes), threads=next(iter(threads), None), **arguments, progress=show)  # type: ignore[arg-type]
    write_product_outputs(report, outputs, lambda path: plot_threads(report, path), view)


def _check_several(outputs: Mapping[str, Any], arguments: Mapping[str, Any], count: int) -> None:
    """Refuse what is for one number of threads only."""
    from lstmsim.base.errors import InputError, Mistake
    from lstmsim.studies.gemm.scaling import wrong_for_several

    wrong = wrong_for_several({**outputs, **arguments}, count)
    mistakes = [Mistake(f"--{each.place.replace('_', '-')}", each.sentence) for each in wrong]
    if mistakes:
        raise InputError(mistakes)


def _run_several(sizes: tuple[str, ...], threads: list[object], arguments: dict[str, Any], json: str | None) -> None:
    """The product on several numbers of threads: a table, and JSON if it is asked for."""
    from lstmsim.studies.gemm.scaling import run_gemm_threads

    with progress("simulating") as show:
        scaling = run_gemm_threads(*map(_size, sizes), threads=threads, **arguments, progress=show)  # type: ignore[arg-type]
    if json is not None:
        write_json(json, scaling.to_dict())
    if json != "-":
        click.echo(scaling.to_text())
        if json is not None:
            remark(f"wrote {json}")
