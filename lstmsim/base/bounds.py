"""Bounds of numbers in files and descriptions; no bound is written anywhere else.

The bounds are far above anything built. They keep every cycle count that can come out within 64 bits.
"""

from __future__ import annotations

#: Units, elements, lanes and whatever else is a size.
MAX_SIZE = 1_000_000
#: Rows or columns of a sparse matrix: a table of one number for each row stays below 128 MB.
MAX_MATRIX_SIDE = 1 << 24
#: Stored entries of a sparse matrix. Their places are kept in 32 bits.
MAX_NONZEROS = 1 << 27
#: Elements of a tensor of a graph. Owners of elements are kept in 32 bits, a few such tables for each tensor.
MAX_ELEMENTS = 1 << 28
#: Size of an axis that a user gives for a graph.
MAX_AXIS = 1 << 24
#: Axes of a tensor of a graph; numpy's index functions take 32.
MAX_RANK = 16
#: Nodes of a graph.
MAX_GRAPH_NODES = 10_000
MAX_STEPS = 1_000_000_000
MAX_LATENCY_CYCLES = 1_000_000
MAX_CYCLES = 1_000_000_000_000
MAX_INTERVAL_CYCLES = 1_000_000_000
#: Processing elements of a core.
MAX_PES = 10_000_000
MAX_BANKS = 65_536
#: Threads of a core; of all cores of a chip at most `MAX_CONTEXTS`.
MAX_THREADS = 1024
MAX_CONTEXTS = 65_536
MAX_CORES = 4096
MAX_WEIGHT_KIB = 1 << 30
MAX_GB_PER_S = 1_000_000
#: Less than any memory beside a chip gives; transfers of models would take hours to simulate.
MIN_GB_PER_S = 0.001
MAX_JOBS = 1_000_000
MAX_CELLS = 100
MIN_FREQUENCY_MHZ = 1e-6
MAX_FREQUENCY_MHZ = 1_000_000
