"""Tiles of a dense product: sizes, default choices, slices of its inner dimension."""

from __future__ import annotations

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.machines.parallel.kernels.options import bad_number, refuse

__all__ = ["GemmOptions", "Tile", "default_tiles", "slices_of", "tile_for", "tile_of"]


@record
class Tile:
    """A tile of a product, and what of it a thread has.

    bm, bn, bk: rows, columns and inner elements of the tile of a block.
    tm, tn: rows and columns of a thread.

    >>> Tile(64, 64, 8, 8, 4).warps(32)
    4
    """

    bm: int
    bn: int
    bk: int
    tm: int
    tn: int

    def warps(self, lanes: int) -> int:
        """Warps of a block.

        lanes: of a warp.

        InputError if the threads do not fill warps or do not cut the tile evenly.
        """
        threads, rest = divmod(self.bm * self.bn, self.tm * self.tn)
        if rest or self.bm % self.tm or self.bn % self.tn:
            place = f"tile {self.bm} x {self.bn}"
            raise InputError(Mistake(place, f"must be cut evenly by threads of {self.tm} x {self.tn}"))
        if threads % lanes:
            raise InputError(Mistake("tile", f"must be for whole warps of {lanes} threads, got {threads} threads"))
        return threads // lanes

    @property
    def shared(self) -> int:
        """Bytes of shared memory of a block."""
        return 4 * self.bk * (self.bm + self.bn)


@record
class GemmOptions:
    """Options of a dense product. What is None follows from the sizes.

    bm, bn, bk: rows, columns and inner elements of the tile of a block; `bk` a multiple of 4.
    tm, tn: rows and columns of a thread; multiples of 4.
    split: slices of the inner dimension; 0: as many as the rule gives.

    The tile is given whole or not at all. InputError if a value does not fit.
    """

    bm: int | None = None
    bn: int | None = None
    bk: int | None = None
    tm: int | None = None
    tn: int | None = None
    split: int = 0

    def __post_init__(self) -> None:
        sizes = {name: getattr(self, name) for name in ("bm", "bn", "bk", "tm", "tn")}
        given = {name: value for name, value in sizes.items() if value is not None}
        mistakes = [bad_number(name, value) for name, value in given.items()] + [bad_number("split", self.split, 0)]
        refuse(mistakes)
        refuse(
            Mistake(name, f"must be a multiple of 4, got {given[name]}")
            for name in ("bk", "tm", "tn")
            if name in given and given[name] % 4
        )
        if given:
            refuse(Mistake(name, "is missing; a tile has bm, bn, bk, tm and tn") for name in sizes if name not in given)


def tile_of(options: GemmOptions) -> Tile | None:
    """The tile that is given, or None."""
    if options.bm is None or options.bn is None or options.bk is None or options.tm is None or options.tn is None:
        return None
    return Tile(options.bm, options.bn, options.bk, options.tm, options.tn)


def default_tiles(columns: int) -> tuple[Tile, ...]:
    """The tiles of which the fastest is taken where none is given.

    columns: of the product.
    """
    if columns <= 16:
        return (Tile(64, 16, 8, 4, 4),)
    if columns <= 32:
        return (Tile(64, 32, 8, 4, 4),)
    return Tile(64, 64, 8, 8, 4), Tile(128, 64, 8, 8, 8), Tile(128, 128, 8, 8, 8)


def slices_of(inner: int, split: int, tile: Tile, tiles: int, sms: int) -> list[tuple[int, int]]:
    """The slices of the inner dimension, each from and to.

    inner: its size.
    split: slices that are asked for, 0 for the rule.
    tile: of a block.
    tiles: of the whole product.
    sms: multiprocessors of the device.

    >>> slices_of(200, 0, Tile(64, 16, 8, 4, 4), 1, 80), slices_of(40, 0, Tile(64, 16, 8, 4, 4), 1, 80)
    ([(0, 72), (72, 144), (144, 200)], [(0, 40)])
    """
    count = split or max(1, min(inner // 64, 2 * sms // tiles))
    # ceil(inner / count), rounded up to whole inner elements of the tile
    length = -(-inner // (count * tile.bk)) * tile.bk
    return [(start, min(inner, start + length)) for start in range(0, inner, length)]


def tile_for(rows: int, columns: int, sms: int) -> Tile:
    """The tile of a product: of the default tiles the largest that still gives each SM a block, else the smallest.

    rows, columns: of the product.
    sms: of the device.
    """
    tiles = default_tiles(columns)
    for tile in reversed(tiles):
        if -(-rows // tile.bm) * -(-columns // tile.bn) >= sms:
            return tile
    return tiles[0]
