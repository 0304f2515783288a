"""Words of the parallel device: for cycles and losses, with what can help, and for its units."""

from __future__ import annotations

from lstmsim.model.figures import MainUnit, Words

#: What the device leaves out, whatever runs on it.
NOT_MODELLED = (
    "instruction fetch, register banks, TLB, slices of L2, rows of DRAM, dual issue",
    "a sector that another load is still bringing counts as there",
)

#: What is to be known about elements of 2 bytes.
HALVES = (
    "elements of 2 bytes: arrays in device memory and their traffic have half the bytes; instructions are those of 4 "
    "bytes (a multiply-add a lane, at most 4 elements a load): no pairs in a lane, no tensor cores, no conversion"
)

#: Names of cycles that not every machine has.
STALLS = ("memory", "barrier", "dependence", "start")

#: What people call the schedulers of an SM and the lanes behind them.
UNIT = MainUnit("issue", "schedulers", "lane")

#: Name of cycles or losses, or word of outputs -> words.
WORDS = {
    "busy": Words("a scheduler issues an instruction", glossary="a scheduler issues an instruction"),
    "memory": Words(
        "warps wait for a load, a store, an atomic or a shuffle",
        "more resident warps would help, or fewer and wider loads",
        "no warp of the scheduler may issue, because one of them waits for a load, a store, an atomic or a shuffle",
        held_by="memory",
        next_wait="memory",
        share="the instruction before it waits for memory",
        spent="waiting for memory",
    ),
    "barrier": Words(
        "warps wait for others at a barrier",
        "fewer steps would help, or blocks of more equal warps",
        "no warp of the scheduler may issue, because one of them waits for others at a barrier",
        held_by="a barrier",
        next_wait="barrier",
        share="a barrier holds its warps back",
        spent="waiting at barriers",
    ),
    "dependence": Words(
        "warps wait for the result of arithmetic",
        "more resident warps would help",
        "no warp of the scheduler may issue, because one of them waits for the result of arithmetic",
        held_by="arithmetic (dependence)",
        next_wait="arithmetic",
        share="an earlier result of arithmetic is not there",
        spent="waiting for arithmetic",
    ),
    "start": Words(
        "blocks are placed and may not issue yet",
        "fewer and longer blocks would help",
        "a block is placed, and the dispatcher has not started it yet",
        held_by="the dispatcher (start)",
        next_wait="dispatcher",
        share="its blocks wait for the dispatcher",
        spent="waiting for the dispatcher",
    ),
    "behind": Words(
        held_by="the launch of a kernel",
        next_wait="launch",
        share="a kernel is being launched",
        spent="waiting for kernels to be launched",
        called="launch",
    ),
    "group to group": Words(
        called="kernel to kernel",
        leg="a kernel starts when the one before it has ended",
        way="from the last issue of a kernel to the first of the next one",
    ),
    "drain": Words("blocks wait for their last results, most often for stores"),
    "idle": Words(
        "no block is on the SM: a kernel is being launched, or there are too few blocks",
        "fewer and longer kernels would help, or more blocks",
        "no block is on the SM",
    ),
    "padding": Words(
        "schedulers issue other instructions than useful multiply-adds, or lanes of these have nothing to do",
        "larger batches would help",
        "lanes that a scheduler's issue does not use for useful multiply-accumulates",
        useful="Where a scheduler issues, {useful} of its lanes do useful multiply-accumulates; the others go to other "
        "instructions or have nothing to do",
    ),
    "SM": Words(glossary="streaming multiprocessor: a core with schedulers, lanes, shared memory and an L1"),
    "warp": Words(glossary="lanes (32 or 64) that take each instruction together", behind="SM"),
    "block": Words(glossary="warps that share an SM; a kernel is a grid of blocks", behind="warp"),
    "issue": Words(glossary="the schedulers of an SM: each issues for warps of its own", behind="warp"),
    "lsu": Words(glossary="load/store unit of an SM: a line of L1 or a wavefront of shared memory a cycle"),
    "port": Words(glossary="the way of sectors between an SM and L2", behind="lsu"),
}
