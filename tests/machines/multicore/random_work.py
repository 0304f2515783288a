"""Random machines, products, cuts and sub-blocks: small, and as nasty as section 1 of docs/multicore.md allows."""

from __future__ import annotations

from hypothesis import strategies as st

from lstmsim.machines.gemm import Cut, Division, Product, SubBlocks
from lstmsim.machines.multicore.chip import MulticoreCpu
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer
from tests.machines.multicore.chips import chip_of
from tests.oracle import multicore_jobs, multicore_plan
from tests.oracle import multicore_steps as model

__all__ = ["cut_of", "cuts", "divisions", "jobs", "layers_of", "machines", "modelled", "products", "threads_on"]

#: Those of the text more often than others.
CELLS = (*(("lstm", "gru", "rnn") * 2), "rnn-relu", "dense-tanh", "mingru", "slstm")
ODD = st.sampled_from([1, 2, 3, 4, 5, 7, 8, 12])


@st.composite
def machines(draw: st.DrawFn) -> MulticoreCpu:
    """Caches are so small that products of some hundred elements meet their blocks and their victims."""
    line = draw(st.sampled_from([8, 32, 48, 64, 64, 128]))
    few, cost = st.integers(0, 3), st.integers(0, 9)
    return chip_of(
        cores=draw(st.integers(1, 9)),
        cores_per_llc=draw(st.integers(1, 5)),
        cores_per_domain=draw(st.integers(1, 5)),
        line=line,
        page=line * draw(st.sampled_from([1, 2, 4, 5, 64])),
        l1_sets=draw(ODD),
        l1_ways=draw(st.integers(1, 4)),
        l2_sets=draw(ODD),
        l2_ways=draw(st.integers(1, 5)),
        llc_sets=draw(st.sampled_from([1, 3, 10, 64, 100])),
        llc_hash=draw(st.sampled_from(["bits", "xor"])),
        llc_ways=draw(st.sampled_from([1, 2, 4, 11, 16])),
        overlap=draw(st.booleans()),
        l2_cycles_per_line=draw(few),
        llc_cycles_per_line=draw(few),
        core_memory_cycles_per_line=draw(cost),
        memory_cycles_per_line=draw(st.integers(1, 6)),
        memory_latency=draw(st.sampled_from([0, 1, 30, 100])),
        remote_latency=draw(st.sampled_from([0, 1, 25])),
        remote_cycles_per_line=draw(few),
        handover_cycles=draw(st.sampled_from([0, 1, 40])),
        barrier_cycles=draw(st.sampled_from([0, 1, 30])),
        macs_per_cycle=draw(ODD),
        lanes=draw(ODD),
        element_bytes=draw(st.sampled_from([1, 2, 4, 4, 8])),
        mr=draw(st.integers(1, 5)),
        nr=draw(st.sampled_from([1, 3, 4, 8, 16])),
        kernel_cycles=draw(cost),
        exact_rows=draw(st.booleans()),
        gemv=draw(st.booleans()),
        pack_per_cycle=draw(ODD),
        update_per_cycle=draw(ODD),
        activation_cycles=draw(st.integers(0, 30)),
        elementwise_cycles=draw(few),
        k_unit=draw(st.sampled_from([1, 3, 8])),
        fill=draw(st.sampled_from([(1, 2), (1, 2), (1, 1), (2, 3)])),
        buffer_fill=draw(st.sampled_from([(1, 2), (1, 16), (1, 1)])),
    )


def threads_on(machine: MulticoreCpu) -> st.SearchStrategy[int]:
    return st.integers(1, len(machine.cores))


@st.composite
def products(draw: st.DrawFn, most: int = 40) -> Product:
    """At most some thousand multiply-accumulates."""
    # every third has one row
    m, n = draw(st.integers(1, most) | st.integers(1, most) | st.just(1)), draw(st.integers(1, most))
    return Product(m, n, draw(st.integers(1, max(1, min(2 * most, 8000 // (m * n))))))


@st.composite
def cuts(draw: st.DrawFn, product: Product, threads: int) -> Cut:
    """Any cut that covers the product, also one that no planner would choose."""
    pairs = [(d, threads // d) for d in range(1, threads + 1) if threads % d == 0]
    p_k, rest = draw(st.sampled_from(pairs))
    p_m, p_n = draw(st.sampled_from([(d, rest // d) for d in range(1, rest + 1) if rest % d == 0]))
    parts = ((product.m, p_m), (product.n, p_n), (product.k, p_k))
    sizes = [-(-whole // part) + draw(st.sampled_from([0, 0, 1, 3])) for whole, part in parts]
    kind = "MN" if p_k == 1 else "MK" if p_n == 1 else "NK"
    return Cut(kind, p_m, p_n, p_k, *sizes)


@st.composite
def divisions(draw: st.DrawFn, machine: MulticoreCpu) -> Division:
    product = draw(products())
    cut = draw(cuts(product, draw(threads_on(machine))))
    sub_blocks = None
    if draw(st.booleans()):
        sm, sn = draw(st.integers(1, cut.mb)), draw(st.integers(1, cut.nb))
        sm, sn = max(sm, cut.mb // 4, 1), max(sn, cut.nb // 4, 1)
        sub_blocks = SubBlocks(sm, sn, -(-cut.mb // sm), -(-cut.nb // sn))
    buffer = cut.p_k > 1 and draw(st.booleans())
    return Division(product, cut, sub_blocks, buffer, packed=draw(st.booleans()))


def modelled(division: Division) -> model.Product:
    """The division as the model takes it."""
    product, sub = division.product, division.sub_blocks
    return model.Product(
        (product.m, product.n, product.k),
        cut_of(division.cut),
        None if sub is None else (sub.sm, sub.sn, sub.s_m, sub.s_n),
        division.buffer,
        division.packed,
    )


def cut_of(cut: Cut) -> multicore_plan.Cut:
    return (cut.kind, cut.p_m, cut.p_n, cut.p_k, cut.mb, cut.nb, cut.kb)


@st.composite
def jobs(draw: st.DrawFn, machine: MulticoreCpu, cells: tuple[str, ...] = CELLS) -> multicore_jobs.Job:
    """A small recurrent job; narrow ones with long sums too, for which K is cut."""
    name = draw(st.sampled_from(cells))
    turns = [(False,)] if name == "dense-tanh" else [(False,), (False,), (False,), (True,), (False, True)]
    width = draw(st.sampled_from([1, 3, 12, 60, 150]))
    layers: list[tuple[int, int, tuple[bool, ...]]] = []
    for _ in range(draw(st.sampled_from([1, 1, 2, 3]))):
        hidden = draw(st.sampled_from([1, 2, 3, 4] if width > 12 else [1, 2, 3, 4, 9, 14]))
        directions = draw(st.sampled_from(turns))
        layers.append((hidden, width, directions))
        width = hidden * len(directions)
    return multicore_jobs.Job(
        name,
        layers,
        draw(st.integers(1, 5)),
        draw(st.sampled_from([1, 1, 2, 2 if layers[0][1] > 12 else 7])),
        draw(threads_on(machine)),
        draw(st.sampled_from([0, 0, 7, 300])),
        draw(st.sampled_from([0, 0, 50, 3000])),
    )


def layers_of(job: multicore_jobs.Job) -> tuple[Layer, ...]:
    return tuple(
        Layer(cell(job.cell), hidden, width, len(directions) == 2, reverse=directions == (True,))
        for hidden, width, directions in job.layers
    )
