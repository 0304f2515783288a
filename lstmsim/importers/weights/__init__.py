"""Weights of networks in files: lstmsim's own layout is written and read, other frameworks' files are imported."""

from lstmsim.importers.weights.files import (
    RNN_CELLS,
    SUFFIXES,
    import_weights,
    read_states,
    read_weights,
    write_weights,
)

__all__ = ["RNN_CELLS", "SUFFIXES", "import_weights", "read_states", "read_weights", "write_weights"]
