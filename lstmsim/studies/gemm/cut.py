"""A cut that a user gives, in place of the planner's: `MK:4x1x16`, or with sizes of blocks `MK:4x1x16:8x512x264`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.base.wording import listed, nearest, show
from lstmsim.machines.gemm import KINDS, Cut
from lstmsim.studies.shared.arguments import refuse

if TYPE_CHECKING:
    from lstmsim.studies.gemm.runs import Asked

__all__ = ["GivenCut", "cut_and_threads", "cut_for", "cut_given"]

_SIZES = r"(\d{1,300})x(\d{1,300})x(\d{1,300})"
_FORM = re.compile(rf"([^:]*):{_SIZES}(?::{_SIZES})?", re.ASCII)
_EXPECTED = "KIND:p_m x p_n x p_k without spaces, like MK:4x1x16, or with sizes of blocks too, like MK:4x1x16:8x512x264"


@record
class GivenCut:
    """A cut as it is given, not yet of any product.

    kind: a key of `lstmsim.machines.gemm.KINDS`.
    parts: into how many parts rows, columns and K are cut.
    sizes: rows, columns and elements of K in a block; None: as the planner would take them.
    """

    kind: str
    parts: tuple[int, int, int]
    sizes: tuple[int, int, int] | None = None

    @property
    def threads(self) -> int:
        """How many threads it is for."""
        return self.parts[0] * self.parts[1] * self.parts[2]


def cut_given(value: object) -> GivenCut:
    """Read a cut; `InputError` if it is none.

    value: a text, or a `Cut`.

    >>> cut_given("MK:4x1x16:8x512x264")
    GivenCut(kind='MK', parts=(4, 1, 16), sizes=(8, 512, 264))
    >>> cut_given("MNN:4x2x2")
    Traceback (most recent call last):
    lstmsim.InputError: cut MNN:4x2x2: 'MNN' must be MN, MK, NK or MNK; did you mean 'MN'?
    """
    if isinstance(value, Cut):
        given = GivenCut(value.kind, (value.p_m, value.p_n, value.p_k), (value.mb, value.nb, value.kb))
    else:
        form = _FORM.fullmatch(value.replace(" ", "")) if isinstance(value, str) else None
        if form is None:
            raise InputError(Mistake("cut", f"must be {_EXPECTED}, got {show(value)}"))
        kind, *texts = form.groups()
        p_m, p_n, p_k, *sizes = (int(each) for each in texts if each is not None)
        given = GivenCut(kind.upper(), (p_m, p_n, p_k), (sizes[0], sizes[1], sizes[2]) if sizes else None)
    if given.kind not in KINDS:
        text = f"{show(given.kind)} must be {listed(KINDS)}{nearest(given.kind, KINDS)}"
        raise InputError(Mistake(f"cut {value}", text))
    refuse(Mistake(f"cut {value}", text) for text in _wrong_parts(given))
    return given


def cut_and_threads(cut: object, threads: int | None) -> tuple[GivenCut | None, int | None]:
    """A cut that may have been given, and the threads: as many as it has parts, unless a number is given too."""
    given = None if cut is None else cut_given(cut)
    return given, given.threads if given is not None and threads is None else threads


def _wrong_parts(given: GivenCut) -> Iterator[str]:
    for letter, parts in zip("MNK", given.parts, strict=True):
        if parts < 1:
            yield f"p_{letter.lower()} must be at least 1, got {parts}"
        elif parts > 1 and letter not in given.kind:
            all_three = "" if given.kind == "MN" else "; MNK cuts all three"
            yield f"{given.kind} leaves {letter} whole, so p_{letter.lower()} must be 1, got {parts}{all_three}"


def cut_for(asked: Asked, given: GivenCut | None) -> Cut | None:
    """The cut of a product; None: none is given.

    asked: the product, and where it runs.
    given: the cut; `InputError` if it is for another number of threads, or if its blocks do not fit the product.
    """
    if given is None:
        return None
    p_m, p_n, p_k = given.parts
    threads = asked.task.threads
    if given.threads != threads:
        text = f"{p_m} x {p_n} x {p_k} parts are for {given.threads:,} threads, and there are {threads:,} threads"
        raise InputError(Mistake("cut", text))
    return asked.threads.cut(asked.chip, asked.task, given.kind, given.parts, given.sizes)
