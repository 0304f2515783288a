"""Words of the multi-core CPU: for cycles and losses, with what can help, and for its units."""

from __future__ import annotations

from lstmsim.model.figures import MainUnit, Words

#: Names of cycles that not every machine has.
STALLS = ("memory", "contention", "barrier")

#: The unit of a core is the core itself; what multiplies in it are lanes of its multiply-add units.
UNIT = MainUnit("core", "cores", "FMA lane")

#: What the simulation does not have, for every job and every product.
LEFT_OUT = (
    "rows a power of two bytes apart, which share few sets of L1 and many pages of the TLB: where a product packs B, "
    "packing took 3 times as long for them on a Zen 4 (experiments/gemm_threads/this_machine.py)",
    "loads of weights that do not overlap with multiplications, and the second pass of a micro-kernel over them: "
    "products of 2 to 32 rows are too fast (a batch of 8 bought LSTM-512 2.0 times the sequences with ONNX Runtime on "
    "a Zen 3, where 3.8 times are predicted: experiments/gemm_threads/expected.md)",
    "TLB, prefetchers as units, the bandwidth of a last-level cache that cores share, L1's bandwidth",
    "two threads on one core, changes of frequency, stores that bypass the caches",
    "traffic does not depend on time: cores take turns at the caches step by step",
    "starting the threads, and the time of the planner itself",
)
#: What jobs of a scenario do not have besides.
OF_JOBS = (
    "each job begins with empty caches, so its time includes loading its weights, which machines that keep theirs "
    "on the chip do not pay",
    "the planner of threads is a reconstruction: the patent gives no formula",
)
#: In place of the first of these for a job with `weights: warm`.
WARM = (
    "`weights: warm`: each job finds the caches as the same job on the same cores left them, at the same addresses, "
    "when it had run until a run was as the one before it; what other jobs leave there in between is not counted"
)
#: Of a job that does not say how many threads it has.
ALL_CORES = (
    "a job without threads takes all cores, which for small networks is often slower than fewer: lstmsim simulate "
    "--explain tries half as many"
)

#: Name of cycles or losses, or word of outputs -> words.
WORDS = {
    "busy": Words(
        "cores pack, multiply, add, or move lines between caches",
        glossary="a core works at a step: it packs, multiplies, adds, or moves lines between caches",
    ),
    "memory": Words(
        "lines come from the memory or go there",
        "a core has done all of a step but for lines of the memory: it draws them itself, or they are not there yet",
        held_by="lines from the memory (memory)",
        next_wait="lines",
        share="lines that it asked the memory for are on their way, or its cores draw them",
        spent="waiting for lines of the memory",
    ),
    "contention": Words(
        "threads wait for a piece of C that another thread adds to",
        "a core waits until another thread has added to the same piece of C and handed it over",
        held_by="a piece of C (contention)",
        next_wait="piece of C",
        share="another thread adds to the piece of C that it would add to",
        spent="waiting for pieces of C",
    ),
    "barrier": Words(
        "threads wait for others at a barrier",
        "a core waits at a barrier until all threads of the job have come there",
        held_by="others at a barrier (barrier)",
        next_wait="barrier",
        share="its threads wait for each other at a barrier",
        spent="waiting at barriers",
    ),
    "drain": Words(
        "the job's last lines or its last barrier are on their way",
        glossary="a core has done its last step, and the job's last lines or its last barrier are on their way",
    ),
    "idle": Words("no job is on the core", "no job is on the core"),
    "padding": Words(
        "cores pack, start micro-kernels, compute activations, or move lines between caches",
        "FMA lanes of a core that is at work and does no useful multiply-accumulate in them",
        useful="Where a core is at work, {useful} of its FMA lanes do useful multiply-accumulates; the others wait for "
        "packing, starts of micro-kernels, activations and lines of caches",
    ),
    "within a step": Words(
        leg="work of a step waits for lines, for a piece of C, or at the barrier before its activations",
        way="between products, or between products and activations, of a step",
    ),
    "step to step": Words(
        leg="a step waits at the barrier behind the step before",
        way="from the activations of a step to the products of the next",
    ),
    "sync": Words(glossary="the unit that counts the threads of a job at a barrier"),
    "core": Words(glossary="a core of the CPU, with vector units, an L1 and an L2 of its own"),
    "thread": Words(glossary="a share of a job on a core of its own; the job says how many there are", behind="core"),
    "LLC": Words(glossary="last-level cache, which some neighbouring cores share", behind="thread"),
    "domain": Words(glossary="cores that are next to the same memory (NUMA domain)", behind="LLC"),
    "tail": Words(glossary="activations and states of a time step, by each thread for its own units", behind="domain"),
}
